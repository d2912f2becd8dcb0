"""Evidence: what a video says about the steps, as similarities and then as costs."""

from __future__ import annotations

from graph2vid.evidence.arrays import cosine_similarity, read_array
from graph2vid.evidence.captions import Cue, read_captions
from graph2vid.evidence.costs import PRESETS, Costs, costs_from_arrays, costs_from_similarity, repeat_costs
from graph2vid.evidence.embed import EMBEDDERS, text_embedder
from graph2vid.evidence.fusion import Source, fuse
from graph2vid.evidence.language import check_language, language_of
from graph2vid.evidence.narration import NarrationSettings, narration_evidence, narration_similarity
from graph2vid.evidence.odds import log_likelihood, log_odds
from graph2vid.evidence.plausibility import plausibilities, plausibility
from graph2vid.evidence.policies import DROP_POLICIES, MATCH_POLICIES, REPEAT_POLICIES, SKIP_POLICIES
from graph2vid.evidence.seen import Seen, frames_evidence, frames_similarity

__all__ = [
    "DROP_POLICIES",
    "EMBEDDERS",
    "MATCH_POLICIES",
    "PRESETS",
    "REPEAT_POLICIES",
    "SKIP_POLICIES",
    "Costs",
    "Cue",
    "NarrationSettings",
    "Seen",
    "Source",
    "check_language",
    "cosine_similarity",
    "costs_from_arrays",
    "costs_from_similarity",
    "frames_evidence",
    "frames_similarity",
    "fuse",
    "language_of",
    "log_likelihood",
    "log_odds",
    "narration_evidence",
    "narration_similarity",
    "plausibilities",
    "plausibility",
    "read_array",
    "read_captions",
    "repeat_costs",
    "text_embedder",
]

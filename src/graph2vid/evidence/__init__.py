"""Evidence: what a video says about the steps, as similarities and then as costs."""

from __future__ import annotations

from graph2vid.evidence.arrays import cosine_similarity, read_array
from graph2vid.evidence.captions import Cue, read_captions
from graph2vid.evidence.costs import PRESETS, Costs, costs_from_arrays, costs_from_similarity
from graph2vid.evidence.embed import EMBEDDERS, text_embedder
from graph2vid.evidence.fusion import Source, fuse
from graph2vid.evidence.narration import NarrationSettings, narration_evidence, narration_similarity
from graph2vid.evidence.odds import log_likelihood, log_odds
from graph2vid.evidence.plausibility import plausibilities, plausibility
from graph2vid.evidence.policies import DROP_POLICIES, MATCH_POLICIES, SKIP_POLICIES

__all__ = [
    "DROP_POLICIES",
    "EMBEDDERS",
    "MATCH_POLICIES",
    "PRESETS",
    "SKIP_POLICIES",
    "Costs",
    "Cue",
    "NarrationSettings",
    "Source",
    "cosine_similarity",
    "costs_from_arrays",
    "costs_from_similarity",
    "fuse",
    "log_likelihood",
    "log_odds",
    "narration_evidence",
    "narration_similarity",
    "plausibilities",
    "plausibility",
    "read_array",
    "read_captions",
    "text_embedder",
]

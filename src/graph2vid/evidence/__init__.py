"""Evidence: everything between media and costs; what speaks for each step in each clip.

Other packages enter here; ``media`` and ``speech``, which need libraries of their own, also by name.
"""

from __future__ import annotations

from graph2vid._deprecated import renamed_attributes
from graph2vid._options import CostOptions, EvidenceOptions
from graph2vid.evidence.acquire import (
    MOST_CLIPS,
    MOST_HOURS,
    Evidence,
    Transcript,
    acquire,
    check_length,
    clips_of,
    embed_frames,
    is_captions,
    media_evidence,
    rank_procedures,
    transcript_of,
)
from graph2vid.evidence.arrays import cosine_similarity, read_array
from graph2vid.evidence.captions import SUFFIXES, TRANSCRIPT_SUFFIXES, Cue, Word, read_captions
from graph2vid.evidence.costs import (
    COSINE_TEMPERATURE,
    PRESETS,
    SCORE_TEMPERATURE,
    Choice,
    Costs,
    check_policies,
    costs_from_arrays,
    costs_from_similarity,
    repeat_costs,
    resolve_choice,
)
from graph2vid.evidence.embed import EMBEDDERS, joint_embedder, text_embedder
from graph2vid.evidence.evidence_cache import Cache, content_hash, text_hash
from graph2vid.evidence.fusion import (
    Source,
    VisualFeatures,
    frames_evidence,
    frames_similarity,
    fuse,
    log_likelihood,
    log_odds,
)
from graph2vid.evidence.language import check_language, language_of
from graph2vid.evidence.media import probe
from graph2vid.evidence.narration import (
    UNLIKELY,
    NarrationSettings,
    Plausibility,
    SaidSettings,
    likeness,
    narration_evidence,
    narration_similarity,
    plausibilities,
    plausibility,
    said_vectors,
    step_vectors,
)
from graph2vid.evidence.policies import (
    DEFAULT_DROP_PERCENTILE,
    DROP_POLICIES,
    MATCH_POLICIES,
    REPEAT_POLICIES,
    SKIP_POLICIES,
    ClipEvidence,
    StepEvidence,
)

__all__ = [
    "COSINE_TEMPERATURE",
    "DEFAULT_DROP_PERCENTILE",
    "DROP_POLICIES",
    "EMBEDDERS",
    "MATCH_POLICIES",
    "MOST_CLIPS",
    "MOST_HOURS",
    "PRESETS",
    "REPEAT_POLICIES",
    "SCORE_TEMPERATURE",
    "SKIP_POLICIES",
    "SUFFIXES",
    "TRANSCRIPT_SUFFIXES",
    "UNLIKELY",
    "Cache",
    "Choice",
    "ClipEvidence",
    "CostOptions",
    "Costs",
    "Cue",
    "Evidence",
    "EvidenceOptions",
    "NarrationSettings",
    "Plausibility",
    "SaidSettings",
    "Source",
    "StepEvidence",
    "Transcript",
    "VisualFeatures",
    "Word",
    "acquire",
    "check_language",
    "check_length",
    "check_policies",
    "clips_of",
    "content_hash",
    "cosine_similarity",
    "costs_from_arrays",
    "costs_from_similarity",
    "embed_frames",
    "frames_evidence",
    "frames_similarity",
    "fuse",
    "is_captions",
    "joint_embedder",
    "language_of",
    "likeness",
    "log_likelihood",
    "log_odds",
    "media_evidence",
    "narration_evidence",
    "narration_similarity",
    "plausibilities",
    "plausibility",
    "probe",
    "rank_procedures",
    "read_array",
    "read_captions",
    "repeat_costs",
    "resolve_choice",
    "said_vectors",
    "step_vectors",
    "text_embedder",
    "text_hash",
    "transcript_of",
]

__getattr__ = renamed_attributes(__name__, Seen="VisualFeatures")

"""Evidence: everything between media and costs; what speaks for each step in each clip.

Other packages enter here; ``media`` and ``speech``, which need libraries of their own, also by name.
"""

from __future__ import annotations

from graph2vid._deprecated import renamed_attributes
from graph2vid._options import CostOptions, EvidenceOptions
from graph2vid.evidence.acquire import Evidence, acquire, embed_frames, media_evidence, rank_procedures
from graph2vid.evidence.arrays import check_clips, cosine_similarity, read_array
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
from graph2vid.evidence.embed import EMBEDDERS, Embedder, Grid, joint_embedder, text_embedder
from graph2vid.evidence.evidence_cache import Cache, content_hash, text_hash
from graph2vid.evidence.fusion import (
    Source,
    VisualFeatures,
    frames_evidence,
    frames_similarity,
    fuse,
    log_likelihood,
    log_odds,
    source_weights,
)
from graph2vid.evidence.language import check_language, content_words, language_of
from graph2vid.evidence.media import probe
from graph2vid.evidence.narration import (
    NarrationSettings,
    SaidSettings,
    narration_evidence,
    narration_similarity,
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
from graph2vid.evidence.sound_fingerprint import HOP_SECONDS, Vectors, fingerprint, stacked
from graph2vid.evidence.task_model import (
    LENGTH,
    Labelled,
    TaskModel,
    clip_vectors,
    fit_logistic,
    labelled_inputs,
    softmax,
    start_logits,
)
from graph2vid.evidence.topic import UNLIKELY, Plausibility, likeness, plausibilities, plausibility
from graph2vid.evidence.transcript import (
    MOST_CLIPS,
    MOST_HOURS,
    Transcript,
    check_length,
    clips_of,
    is_captions,
    transcript_of,
)

# From media to a transcript, visual features and log-odds.
__all__ = ["MOST_CLIPS", "MOST_HOURS", "Evidence", "EvidenceOptions", "Transcript", "acquire", "check_length"]
__all__ += ["clips_of", "embed_frames", "is_captions", "media_evidence", "probe", "rank_procedures", "transcript_of"]
# Captions, narration and languages.
__all__ += ["SUFFIXES", "TRANSCRIPT_SUFFIXES", "UNLIKELY", "Cue", "NarrationSettings", "Plausibility", "SaidSettings"]
__all__ += ["Word", "check_language", "language_of", "likeness", "narration_evidence", "narration_similarity"]
__all__ += ["plausibilities", "plausibility", "read_captions", "said_vectors", "step_vectors"]
# Embedders, frames, and several kinds of evidence together.
__all__ += ["EMBEDDERS", "Source", "VisualFeatures", "frames_evidence", "frames_similarity", "fuse", "joint_embedder"]
__all__ += ["log_likelihood", "log_odds", "source_weights", "text_embedder"]
# What is learnt about one task.
__all__ += ["LENGTH", "Embedder", "Grid", "Labelled", "TaskModel", "clip_vectors", "content_words", "fit_logistic"]
__all__ += ["labelled_inputs", "softmax", "start_logits"]
# Arrays, and the costs that policies make of them.
__all__ += ["COSINE_TEMPERATURE", "DEFAULT_DROP_PERCENTILE", "DROP_POLICIES", "MATCH_POLICIES", "PRESETS"]
__all__ += ["REPEAT_POLICIES", "SCORE_TEMPERATURE", "SKIP_POLICIES", "Choice", "ClipEvidence", "CostOptions", "Costs"]
__all__ += ["StepEvidence", "check_policies", "cosine_similarity", "costs_from_arrays", "costs_from_similarity"]
__all__ += ["check_clips", "read_array", "repeat_costs", "resolve_choice"]
# What a video sounds like.
__all__ += ["HOP_SECONDS", "Vectors", "fingerprint", "stacked"]
# What took long to make is kept.
__all__ += ["Cache", "content_hash", "text_hash"]

__getattr__ = renamed_attributes(__name__, Seen="VisualFeatures")

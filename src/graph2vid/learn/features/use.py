"""Trained features at work: from a checkpoint to the arrays that are grounded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import FormatError, InputError
from graph2vid.evidence import MOST_HOURS, Cue, SaidSettings, clips_of, said_vectors, step_vectors, text_embedder
from graph2vid.evidence.embed import Grid
from graph2vid.learn.features import checkpoint
from graph2vid.learn.features.residual_mlp import ResidualMLP


@dataclass(frozen=True)
class TrainedFeatures:
    """Features from ``graph2vid train features``.

    Attributes
    ----------
    path : Path
        Where they come from, for messages.
    mlp : ResidualMLP
    about : dict
        How clips and steps are compared, and what the clips' vectors were made from.
    """

    path: Path
    mlp: ResidualMLP
    about: dict[str, Any]

    def arrays(self, steps: NDArray[np.floating[Any]], clips: NDArray[np.floating[Any]]) -> dict[str, Any]:
        """Return the evidence for :func:`graph2vid.ground` from vectors of steps [K, D] and clips [N, D].

        Features that were trained with a prototype of background have a ``drop``, too.
        """
        if steps.ndim != 2 or steps.shape[1] != self.mlp.dimension:
            wanted = f"{self.path} was trained on {self.mlp.dimension} dimensions"
            raise InputError(f"the steps have shape {steps.shape}; {wanted}")
        if not np.isfinite(clips).all():
            raise InputError("the clips hold NaN or infinite numbers")
        made = self.mlp.transform(clips)
        prototype = None if self.mlp.prototype is None else self.mlp.prototype.detach().cpu().numpy()
        if self.about["comparison"] == "dot":
            drop = {} if prototype is None else {"drop": ("relative", made @ prototype)}
            return {"scores": steps.astype(np.float32) @ made.T, **drop}
        return {"clips": made, "steps": steps, **({} if prototype is None else {"drop": ("relative", prototype)})}

    def said(
        self,
        steps: Sequence[str],
        cues: Sequence[Cue],
        duration: float,
        *,
        clip_seconds: float = 1.0,
        max_hours: float = MOST_HOURS,
    ) -> dict[str, Any]:
        """Return the evidence for :func:`graph2vid.ground` from the texts of steps and the transcript of a video."""
        source = dict(self.about["source"])
        if source.pop("kind") != "narration":
            advice = "give arrays of its kind, --clips and --steps"
            raise InputError(f"{self.path} was not trained on transcripts: {advice}")
        embed = text_embedder(source.pop("embedder"))
        try:
            settings = SaidSettings(**source)
        except TypeError as error:
            raise FormatError(f"{self.path} is damaged, or was made by another version: {error}") from None
        clips_of(duration, clip_seconds, max_hours)
        n_clips = max(1, Grid(clip_seconds).clips_until(duration))
        clips = said_vectors(cues, n_clips, embed, clip_seconds=clip_seconds, settings=settings)
        return self.arrays(step_vectors(steps, embed), clips)


def load_features(path: str | os.PathLike[str]) -> TrainedFeatures:
    """Read the features of a checkpoint: those of its best epoch."""
    state = checkpoint.load(path)
    source = state.about.get("source")
    told = [source.get("kind"), source.get("embedder", "")] if isinstance(source, dict) else [None]
    if not all(isinstance(part, str) for part in (state.about.get("comparison"), *told)):
        raise FormatError(f"{path} does not say what its features are made from: its 'about' is damaged")
    return TrainedFeatures(Path(path), state.model(), state.about)

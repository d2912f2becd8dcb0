"""Embeddings that were made elsewhere, behind the same interface."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from graph2vid.errors import InputError
from graph2vid.evidence.arrays import Floats, as_matrix, read_array, refuse
from graph2vid.evidence.embed.interface import EMBEDDERS, Embedder, Frames, Grid, TextFunction
from graph2vid.evidence.evidence_cache import content_hash

_ROUNDED = 1  # clips by which the end of a video may be cut in another way


@EMBEDDERS.register("array")
def load(argument: str) -> Embedder:
    """``array:CLIPS.npy[,STEPS.npy]``: rows for the clips of one video and for the steps of one procedure, in order.

    One clip more or less than the video has is no matter: the last is left out, or taken to show nothing.
    """
    files = argument.split(",")
    if not argument or len(files) > 2 or "" in files:
        raise InputError("the embedder array needs one file or two: array:CLIPS.npy or array:CLIPS.npy,STEPS.npy")
    clips = _matrix(files[0], "clips")
    texts: TextFunction | None = None
    if len(files) == 2:
        steps = _matrix(files[1], "steps")
        if steps.shape[1] != clips.shape[1]:
            shapes = f"{files[0]} {clips.shape} and {files[1]} {steps.shape} must agree on axis 1"
            raise InputError(f"{shapes}: clips and steps that are compared have vectors of one length")

        def texts(texts: Sequence[str]) -> Floats:
            if len(texts) != len(steps):
                held = f"{files[1]} holds the vectors of {len(steps)} texts"
                raise InputError(f"{held}, and those of {len(texts)} are wanted")
            return steps

    def given_clips(frames: Frames, grid: Grid) -> Floats:
        wanted = len(clips) if grid.n_clips is None else grid.n_clips
        if abs(wanted - len(clips)) > _ROUNDED:
            raise InputError(f"{files[0]} holds the vectors of {len(clips)} clips, and {wanted} are wanted")
        return np.pad(clips, ((0, max(wanted - len(clips), 0)), (0, 0)))[:wanted]

    version = "/".join(content_hash(Path(file)) for file in files)
    return Embedder(f"array:{argument}", version, clips.shape[1], texts, given_clips, joint=texts is not None)


def _matrix(file: str, what: str) -> Floats:
    matrix = as_matrix(read_array(file), file, (what, "dimensions"))
    refuse(~np.isfinite(matrix), matrix, file, (what[:-1], "dimension"), "embeddings must be finite")
    return matrix

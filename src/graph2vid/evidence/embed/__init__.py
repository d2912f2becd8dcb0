"""Embedders behind names: texts and clips of video as vectors, so that they can be compared."""

from __future__ import annotations

# Importing a family enters it in EMBEDDERS; none of them imports its library before it is used.
from graph2vid.evidence.embed import array, i3d, minilm, pictures, s3d, sentence
from graph2vid.evidence.embed.interface import (
    EMBEDDERS,
    Embedder,
    Frames,
    Grid,
    cached,
    clip_embedder,
    embedder,
    joint_embedder,
    text_embedder,
    video_clips,
)

FAMILIES = (sentence, minilm, pictures, s3d, i3d, array)
"""The modules of the families that come with graph2vid."""

__all__ = ["EMBEDDERS", "FAMILIES", "Embedder", "Frames", "Grid", "cached", "clip_embedder", "embedder"]
__all__ += ["joint_embedder", "text_embedder", "video_clips"]

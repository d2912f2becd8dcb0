"""Procedures of our own with their videos: one narrated, one as mere scores; and the truth about them."""

from __future__ import annotations

from graph2vid.sample.load import FILES, Sample, load
from graph2vid.sample.narrated import Narrated, NarratedFiles, load_narrated
from graph2vid.sample.outcome import NEAR, Outcome, ground_narrated_sample, ground_sample

__all__ = ["FILES", "NEAR", "Narrated", "NarratedFiles", "Outcome", "Sample", "ground_narrated_sample"]
__all__ += ["ground_sample", "load", "load_narrated"]

"""Procedures of our own with their videos: one narrated, one silent, one as mere scores; and the truth about them."""

from __future__ import annotations

from graph2vid.sample.load import FILES, Sample, load
from graph2vid.sample.narrated import Narrated, NarratedFiles, load_narrated
from graph2vid.sample.outcome import NEAR, Outcome, ground_narrated_sample, ground_sample, ground_silent_sample
from graph2vid.sample.silent import Silent, SilentFiles, load_silent

__all__ = ["FILES", "NEAR", "Narrated", "NarratedFiles", "Outcome", "Sample", "Silent", "SilentFiles"]
__all__ += ["ground_narrated_sample", "ground_sample", "ground_silent_sample", "load", "load_narrated", "load_silent"]

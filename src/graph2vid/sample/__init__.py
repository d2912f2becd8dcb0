"""A small procedure of our own, with scores of a made-up video and the truth about it (see ``make``)."""

from __future__ import annotations

from graph2vid.sample.load import FILES, Sample, load
from graph2vid.sample.outcome import Outcome, ground_sample

__all__ = ["FILES", "Outcome", "Sample", "ground_sample", "load"]

"""Whole corpora: a manifest of videos in, data sets of segments and videos out, whatever happens in between."""

from __future__ import annotations

from graph2vid.batch.driver import StoppedError, Summary, check_manifest, run_batch
from graph2vid.batch.manifest import Manifest, Problem
from graph2vid.batch.settings import RunOptions

__all__ = ["Manifest", "Problem", "RunOptions", "StoppedError", "Summary", "check_manifest", "run_batch"]

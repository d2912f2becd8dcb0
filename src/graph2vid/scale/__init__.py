"""Whole corpora: a manifest of videos in, data sets of segments and videos out, whatever happens in between."""

from __future__ import annotations

from graph2vid.scale.manifest import Manifest, Problem
from graph2vid.scale.run import StoppedError, Summary, check_manifest, run_batch
from graph2vid.scale.settings import RunOptions

__all__ = ["Manifest", "Problem", "RunOptions", "StoppedError", "Summary", "check_manifest", "run_batch"]

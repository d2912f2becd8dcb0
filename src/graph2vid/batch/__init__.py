"""Whole corpora: a manifest of videos in, data sets of segments and videos out, whatever happens in between.

A manifest is read (:mod:`~graph2vid.batch.manifest`) and checked (:mod:`~graph2vid.batch.row_checks`). Its rows are cut
into batches (:mod:`~graph2vid.batch.batches`) that worker processes (:mod:`~graph2vid.batch.workers`) or actors of Ray
(:mod:`~graph2vid.batch.on_ray`) take through the stages (:mod:`~graph2vid.batch.stages`): transcribe, embed, align,
where videos of one procedure get their costs (:mod:`~graph2vid.batch.row_costs`) and are aligned
(:mod:`~graph2vid.batch.aligning`) side by side. Results are kept in parts with digests, and published as data sets at
the end (:mod:`~graph2vid.batch.parts`).
"""

from __future__ import annotations

from graph2vid.batch.published import Published, publish
from graph2vid.batch.runs import Manifest, Problem, StoppedError, Summary, check_manifest, run_batch
from graph2vid.batch.settings import RunOptions

__all__ = ["Manifest", "Problem", "Published", "RunOptions", "StoppedError", "Summary", "check_manifest", "publish"]
__all__ += ["run_batch"]

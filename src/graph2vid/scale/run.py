"""A manifest worked through: from the check to the data sets, with all that a run that was cut short needs to go on."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from graph2vid import __version__
from graph2vid._files import check_format, read_json, write_json
from graph2vid.errors import Graph2VidError, InputError
from graph2vid.evidence.cache import FOLDER_VARIABLE
from graph2vid.scale._packages import arrow, compute
from graph2vid.scale.job import Job
from graph2vid.scale.local import ready_workers, run_local
from graph2vid.scale.manifest import Manifest, read_manifest
from graph2vid.scale.parts import Parts, check_folder
from graph2vid.scale.results import FAILED
from graph2vid.scale.settings import Context, RunOptions, check_option
from graph2vid.scale.worker import SECONDS

Progress: TypeAlias = Callable[[int, int, int], None]
"""Is told how many rows are done, how many of them failed, and how many there are."""

_Work: TypeAlias = Callable[[Job, "_Committer"], None]

KIND = "graph2vid-batch"
VERSION = 2

_PART_ROWS = 512
_PART_SECONDS = 5.0


class StoppedError(Graph2VidError):
    """A row failed, and the run was to stop then; what was done before is kept."""


@dataclass
class Summary:
    """What a run did.

    Attributes
    ----------
    rows : int
        In the manifest.
    done, failed : int
        In this run.
    skipped : int
        Done by an earlier run, and left as they are.
    reasons : dict of str to int
        Why rows failed, in this run, and how many did for each reason.
    seconds : float
        From the check to the data sets.
    stage_seconds : dict of str to float
        Seconds of work by stage, over all workers.
    """

    rows: int
    done: int = 0
    failed: int = 0
    skipped: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    stage_seconds: dict[str, float] = field(default_factory=dict)

    @property
    def videos_per_second(self) -> float:
        """Rows of this run by its seconds."""
        return (self.done + self.failed) / self.seconds if self.seconds else 0.0

    def add(self, table: Any) -> None:
        """Count results."""
        status = Counter(table.column("status").to_pylist())
        self.failed += status[FAILED]
        self.done += len(table) - status[FAILED]
        self.reasons.update(reason for reason in table.column("error").to_pylist() if reason)
        for stage, seconds in _stage_seconds(table).items():
            self.stage_seconds[stage] = self.stage_seconds.get(stage, 0.0) + seconds

    def to_json(self) -> dict[str, Any]:
        """Return the summary as a JSON document."""
        return {
            "format": "graph2vid-batch-summary",
            "version": 1,
            "graph2vid": __version__,
            "rows": self.rows,
            "done": self.done,
            "skipped": self.skipped,
            "failed": self.failed,
            "reasons": dict(self.reasons.most_common()),
            "seconds": self.seconds,
            "videos_per_second": self.videos_per_second,
            "stage_seconds": self.stage_seconds,
        }


def run_batch(
    manifest: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    options: RunOptions | None = None,
    row_options: Mapping[str, Any] | None = None,
    documents: bool = False,
    cache: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    checked: Callable[[Manifest], None] | None = None,
) -> Summary:
    """Ground all videos of a manifest, and write data sets of segments and videos.

    Parameters
    ----------
    manifest : path
        ``.jsonl``, ``.csv`` or ``.parquet``; see the documentation, "Whole corpora".
    out : path
        The folder of the run: ``videos/`` and ``segments/`` (Parquet, sorted by id), ``parts/`` (what is done so
        far), ``log.jsonl`` (times), ``cache/`` (what took long to make).
    options : RunOptions, optional
        How the work is done.
    row_options : mapping, optional
        Options of all rows that do not say otherwise: ``clip_seconds``, ``embedder``, …
    documents : bool
        Write each video's grounding as JSON into ``documents/``, too.
    cache : path, optional
        Where what took long to make is kept; by default ``$GRAPH2VID_CACHE``, else in ``out``.
    progress : callable, optional
    checked : callable, optional
        Is handed the manifest after the check, before work begins.

    Returns
    -------
    Summary

    Raises
    ------
    InputError
        The manifest cannot be worked on, or with ``on_error="stop"`` any of its rows; the folder holds other results.
    StoppedError
        With ``on_error="stop"``: a row failed.
    """
    began = time.perf_counter()
    options = options or RunOptions()
    out, manifest = Path(out), Path(manifest)
    check_folder(out, options.resume)
    parts = Parts(out)
    with parts.locked(), _workers(options) as work:
        context = _context(manifest, out, row_options, cache)
        _check_same_run(out, context.options)
        if documents:
            context = replace(context, documents=str(out.resolve() / "documents"))
        found = read_manifest(manifest, out / "rows.parquet", context)
        if checked is not None:
            checked(found)
        refuse_unusable(found, options.on_error)
        context = replace(context, problems=found.unusable)
        summary = _work(found, parts, context, options, progress, work)
        parts.publish()
        summary.seconds = time.perf_counter() - began
        _log(out, "end", summary.to_json())
    return summary


def check_manifest(
    manifest: str | os.PathLike[str],
    row_options: Mapping[str, Any] | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> Manifest:
    """Read and check a manifest as :func:`run_batch` does, and leave it at that."""
    with tempfile.TemporaryDirectory(prefix="graph2vid-") as folder:
        context = _context(Path(manifest), Path(folder), row_options, cache)
        return read_manifest(Path(manifest), Path(folder) / "rows.parquet", context)


def _context(
    manifest: Path, out: Path, row_options: Mapping[str, Any] | None, cache: str | os.PathLike[str] | None
) -> Context:
    given = {name: check_option(name, value) for name, value in (row_options or {}).items() if value is not None}
    return Context(
        folder=str(manifest.resolve().parent),
        cache=str(cache or os.environ.get(FOLDER_VARIABLE) or out.resolve() / "cache"),
        options=given,
    )


def refuse_unusable(manifest: Manifest, on_error: str) -> None:
    """Raise if a manifest cannot be worked on: as a whole, or with ``on_error="stop"`` any of its rows."""
    problems = manifest.fatal if on_error == "skip" else manifest.problems
    if not problems and len(manifest.unusable) == len(manifest):
        problems = manifest.problems
    if problems:
        more = f" (and {len(problems) - 1} more: graph2vid batch --check lists them)" if len(problems) > 1 else ""
        raise InputError(f"{manifest.path}, {problems[0]}{more}")


def _work(
    manifest: Manifest,
    parts: Parts,
    context: Context,
    options: RunOptions,
    progress: Progress | None,
    work: _Work,
) -> Summary:
    pc = compute()
    known = parts.known()
    attempt = 0
    if options.retry_failed and len(known):
        attempt = (pc.max(known.column("attempt")).as_py() or 0) + 1
        known = known.filter(pc.not_equal(known.column("status"), FAILED))
    done = pc.unique(known.column("id"))
    summary = Summary(len(manifest))
    summary.skipped = pc.sum(pc.is_in(manifest.ids, value_set=done)).as_py() or 0
    if summary.skipped == len(manifest):
        return summary
    job = Job(manifest.rows, done, attempt, manifest.kinds, context, options)
    _log(parts.out, "begin", {"rows": len(manifest), "skipped": summary.skipped, "engine": options.engine})
    committer = _Committer(parts, summary, options, progress)
    try:
        work(job, committer)
    finally:
        committer.flush()
    return summary


@contextmanager
def _workers(options: RunOptions) -> Iterator[_Work]:
    """Yield what works on a job, by the engine."""
    if options.engine == "ray":
        from graph2vid.scale.on_ray import run_ray

        yield lambda job, committer: run_ray(job, committer.parts, committer.count)
        return
    with ready_workers(options) as nursery:
        yield lambda job, committer: run_local(job, nursery, committer.keep, committer.flush_when_due)


class _Committer:
    """Gathers results to parts of a good size, but never keeps them waiting for long."""

    def __init__(self, parts: Parts, summary: Summary, options: RunOptions, progress: Progress | None) -> None:
        self.parts = parts
        self._summary = summary
        self._options = options
        self._progress = progress
        self._waiting: list[Any] = []
        self._since = 0.0

    def keep(self, table: Any) -> None:
        """Take results, and commit them with others."""
        pc = compute()
        failed = None
        if self._options.on_error == "stop":
            bad = pc.equal(table.column("status"), FAILED)
            failed, table = table.filter(bad), table.filter(pc.invert(bad))
        self._waiting.append(table.replace_schema_metadata(None))
        if len(self._waiting) == 1:
            self._since = time.monotonic()
        self.flush_when_due()
        self.count(table)
        if failed is not None and len(failed):
            first = failed.slice(0, 1).to_pylist()[0]
            raise StoppedError(
                f"stopped at row {first['id']!r}: {first['error']} (what is done is kept; --resume goes on)"
            )

    def count(self, table: Any) -> None:
        """Count results that are committed, and tell of them."""
        summary = self._summary
        summary.add(table)
        _log(self.parts.out, "batch", {"rows": len(table), "stages": _stage_seconds(table)})
        if self._progress is not None:
            self._progress(summary.done + summary.failed, summary.failed, summary.rows - summary.skipped)

    def flush_when_due(self) -> None:
        """Commit what waits, if it is much or has waited for long."""
        if sum(map(len, self._waiting)) >= _PART_ROWS or time.monotonic() - self._since > _PART_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Commit what waits."""
        pa = arrow()
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.parts.commit(pa.concat_tables(waiting))


def _stage_seconds(table: Any) -> dict[str, float]:
    """Return what a worker told of the time of its stages."""
    told: dict[str, float] = json.loads((table.schema.metadata or {}).get(SECONDS, b"{}"))
    return told


def _check_same_run(out: Path, row_options: Mapping[str, Any]) -> None:
    """Write what a run is about beside its results; a run that goes on must be about the same."""
    path = out / "run.json"
    about = {"format": KIND, "version": VERSION, "graph2vid": __version__, "options": dict(row_options)}
    if path.exists() and Parts(out).files():
        before = check_format(read_json(path), kind=KIND, version=VERSION, source=str(path)).get("options")
        if before != about["options"]:
            raise InputError(
                f"{out} was begun with the options {before or 'by default'}, not {dict(row_options) or 'by default'}: "
                "go on with the same, or name another folder"
            )
        return
    write_json(path, about)


def _log(out: Path, event: str, what: Mapping[str, Any]) -> None:
    """Add a line to the log of the run, which is for people and is not among the results."""
    line = {"time": round(time.time(), 3), "event": event, **what}
    with contextlib.suppress(OSError), (out / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")

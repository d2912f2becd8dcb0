"""A manifest worked through: from the check to the data sets, with all that a run that was cut short needs to go on."""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from graph2vid import __version__
from graph2vid._files import write_json
from graph2vid.batch._packages import arrow, compute
from graph2vid.batch.fork_server import Nursery
from graph2vid.batch.guarded_worker import Guard
from graph2vid.batch.job import Job
from graph2vid.batch.local import ready_workers, run_local
from graph2vid.batch.manifest import Manifest
from graph2vid.batch.parquet import tables
from graph2vid.batch.parts import LostRowsError, Parts, check_folder, is_wanted
from graph2vid.batch.results import FAILED, failures
from graph2vid.batch.rows import decode, row_digests, texts
from graph2vid.batch.settings import Context, RunOptions, check_option
from graph2vid.batch.worker import SECONDS
from graph2vid.errors import Graph2VidError, InputError
from graph2vid.evidence.evidence_cache import text_hash

Progress: TypeAlias = Callable[[int, int, int], None]
"""Is told how many rows are done, how many of them failed, and how many there are."""

KIND = "graph2vid-batch"
VERSION = 3

_PART_ROWS = 512
_PART_SECONDS = 5.0
_TRIES = 3


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
        Have a result by an earlier run, and are left as they are.
    failed_before : int
        Of those, rows that failed.
    changed : int
        Have a result by an earlier run, but are others now (another procedure, video or option): done again.
    removed : int
        Have a result by an earlier run, but are no longer in the manifest: not among the results.
    damaged : int
        Parts that were not what had been written: removed, and their rows done again.
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
    failed_before: int = 0
    changed: int = 0
    removed: int = 0
    damaged: int = 0
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
            "failed_before": self.failed_before,
            "changed": self.changed,
            "removed": self.removed,
            "damaged": self.damaged,
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
        far), ``log.jsonl`` (times).
    options : RunOptions, optional
        How the work is done.
    row_options : mapping, optional
        Options of all rows that do not say otherwise: ``clip_seconds``, ``embedder``, …
    documents : bool
        Write each video's grounding as JSON into ``documents/``, too.
    cache : path, optional
        Where what took long to make is kept; by default in the user's cache.
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
    with parts.locked(), ready_workers(options) as nursery:
        context = _context(manifest, row_options, cache)
        if documents:
            context = replace(context, documents=str(out.resolve() / "documents"))
        found = _checked(nursery, manifest, out / "rows.parquet", context)
        if checked is not None:
            checked(found)
        refuse_unusable(found, options.on_error)
        write_json(out / "run.json", _about(context))
        summary = Summary(len(found))
        run = _Run(found, parts, replace(context, problems=found.unusable), options, progress, nursery)
        for _ in range(_TRIES):
            wanted = run.work(summary)
            try:
                parts.publish(wanted)
            except LostRowsError:
                continue
            break
        else:
            raise Graph2VidError(
                f"{parts.folder}: parts are damaged as soon as they are written, or files of the manifest change while "
                "they are worked on; nothing is published: check the disk, then --resume"
            )
        summary.seconds = time.perf_counter() - began
        _log(out, "end", summary.to_json())
    return summary


def check_manifest(
    manifest: str | os.PathLike[str],
    row_options: Mapping[str, Any] | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> Manifest:
    """Read and check a manifest as :func:`run_batch` does, and leave it at that."""
    with tempfile.TemporaryDirectory(prefix="graph2vid-") as folder, ready_workers(RunOptions(workers=1)) as nursery:
        context = _context(Path(manifest), row_options, cache)
        return _checked(nursery, Path(manifest), Path(folder) / "rows.parquet", context)


def _checked(nursery: Nursery, manifest: Path, copy: Path, context: Context) -> Manifest:
    arrow()  # it loads while the worker does
    with Guard(context, math.inf, nursery) as guard:
        return guard.check(manifest, copy)


def _context(manifest: Path, row_options: Mapping[str, Any] | None, cache: str | os.PathLike[str] | None) -> Context:
    given = {name: check_option(name, value) for name, value in (row_options or {}).items() if value is not None}
    return Context(
        folder=str(manifest.resolve().parent),
        cache=None if cache is None else str(cache),
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


@dataclass
class _Run:
    """All that working through a manifest takes; ``attempt`` is what this run is to rows that were tried before."""

    manifest: Manifest
    parts: Parts
    context: Context
    options: RunOptions
    progress: Progress | None
    nursery: Nursery
    attempt: int | None = None

    def work(self, summary: Summary) -> Any:
        """Do all rows that have no sound result; return id and digest of all rows, as :meth:`Parts.publish` wants."""
        pa, pc = arrow(), compute()
        damaged = self.parts.discard_damaged()
        summary.damaged += damaged
        known = self.parts.known()
        ids = self.manifest.ids
        digests = self._digests(pc.is_in(ids, value_set=known.column("id")))
        wanted = pa.Table.from_arrays([ids, digests], ["id", "digest"])
        first, attempt = self.attempt is None, self.attempt or 0
        if first and self.options.retry_failed and len(known):
            attempt = (pc.max(known.column("attempt")).as_py() or 0) + 1
        self.attempt = attempt
        done = self._settled(known, wanted, summary if first else None)
        self._tell(summary, damaged)
        if len(done) == len(ids):
            return wanted
        job = Job(self.manifest.rows, wanted, done, attempt, self.manifest.kinds, self.context, self.options)
        _log(
            self.parts.out,
            "begin",
            {"rows": len(ids), "skipped": len(done), "damaged": damaged, "engine": self.options.engine},
        )
        committer = _Committer(self.parts, summary, self.options, self.progress)
        try:
            self._fail_unreadable(job, committer)
            self._engine(job, committer)
        finally:
            committer.flush()
        return wanted

    def _settled(self, known: Any, wanted: Any, summary: Summary | None) -> Any:
        """Return the ids of rows that are left as they are; the first time they and others are counted, too."""
        pc = compute()
        if not len(known):  # nor is pandas loaded, as it would be by a comparison below
            return pc.unique(known.column("id"))
        now = known.filter(is_wanted(known, wanted))
        failed = pc.equal(now.column("status"), FAILED)
        left = pc.invert(pc.and_(failed, pc.less(now.column("attempt"), self.attempt)))
        sound, failed = now.filter(left), failed.filter(left)
        done = pc.unique(sound.column("id"))
        if summary is not None:
            before = pc.unique(known.column("id"))
            there = pc.sum(pc.is_in(before, value_set=wanted.column("id"))).as_py() or 0
            summary.skipped = len(done)
            summary.failed_before = len(done) - len(pc.unique(sound.column("id").filter(pc.invert(failed))))
            summary.removed = len(before) - there
            summary.changed = there - len(pc.unique(now.column("id")))
        return done

    def _engine(self, job: Job, committer: _Committer) -> None:
        if not sum(job.kinds.values()):
            return
        if self.options.engine == "ray":
            from graph2vid.batch.on_ray import run_ray

            run_ray(job, committer.parts, committer.count)
        else:
            run_local(job, self.nursery, committer.keep, committer.flush_when_due)

    def _digests(self, asked: Any) -> Any:
        """Return the digests of rows of the manifest; None of those that are not asked for."""
        pa, pc = arrow(), compute()
        if not pc.any(asked).as_py():
            return pa.nulls(len(asked), pa.binary())
        names = self.manifest.ids.filter(asked)
        unreadable = self.manifest.unreadable
        found = {name: text_hash(why).encode() for name, why in unreadable.items()}
        if len(self.manifest) > len(unreadable):
            for table in tables(self.manifest.rows):
                rows = decode(table.filter(pc.is_in(texts(table, "id"), value_set=names)), self.context)
                found |= zip((row.id for row in rows), row_digests(rows, self.context), strict=True)
        chosen = zip(self.manifest.ids.to_pylist(), asked.to_pylist(), strict=True)
        return pa.array([found[name] if ask else None for name, ask in chosen], pa.binary())

    def _fail_unreadable(self, job: Job, committer: _Committer) -> None:
        """Give rows that no worker can read their results."""
        left = set(self.manifest.unreadable) - set(job.done.to_pylist())
        if left:
            names = sorted(left)
            reasons = [self.manifest.unreadable[name] for name in names]
            digests = [text_hash(reason).encode() for reason in reasons]
            committer.keep(failures(names, reasons, job.attempt, digests))

    def _tell(self, summary: Summary, damaged: int) -> None:
        """Warn of what is not as an earlier run left it, before the work begins."""
        told = [
            f"{_count(count, what)} {words}"
            for count, what, words in (
                (damaged, "part", "damaged, or of an older version: their rows are done again"),
                (summary.changed, "row", "changed since they were done: they are done again"),
                (summary.removed, "row", "no longer in the manifest: they are left out"),
            )
            if count
        ]
        if told:
            warnings.warn(f"{self.parts.out}: {'; '.join(told)}", stacklevel=4)


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


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s'[: number != 1]}"


def _about(context: Context) -> dict[str, Any]:
    """Return what a run is about; for people, since each row's result knows what it depends on."""
    return {"format": KIND, "version": VERSION, "graph2vid": __version__, "options": dict(context.options)}


def _log(out: Path, event: str, what: Mapping[str, Any]) -> None:
    """Add a line to the log of the run, which is for people and is not among the results."""
    line = {"time": round(time.time(), 3), "event": event, **what}
    with contextlib.suppress(OSError), (out / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")

"""A manifest worked through: from the check to the data sets, with all that a run that was cut short needs to go on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graph2vid import __version__, errors
from graph2vid._files import write_json
from graph2vid._processes import cpu_count
from graph2vid.batch.batches import Job, RowsTask, stretches, tables
from graph2vid.batch.columns import strings, texts
from graph2vid.batch.parts import LostRowsError, Parts, check_folder, is_wanted
from graph2vid.batch.results import FAILED, SECONDS, TOLD, failures, from_bytes
from graph2vid.batch.rows import decode, row_digests
from graph2vid.batch.runs import Manifest, Problem, Run, StoppedError, Summary
from graph2vid.batch.settings import Context
from graph2vid.batch.workers import WorkerPool
from graph2vid.errors import FormatError, Graph2VidError, InputError

KIND = "graph2vid-batch"
VERSION = 3

_PART_ROWS = 512
_PART_SECONDS = 5.0
_TRIES = 3


def drive(run: Run, pool: WorkerPool) -> Summary:
    """Do what :func:`graph2vid.batch.run_batch` does, with the workers of a pool."""
    began = time.perf_counter()
    check_folder(run.out, run.options.resume)
    parts = Parts(run.out)
    with parts.locked():
        found = check(run.manifest, run.out / "rows.parquet", run.context, pool)
        if run.checked is not None:
            run.checked(found)
        refuse_unusable(found, run.options.on_error)
        # For people, since each row's result knows what it depends on.
        about = {"format": KIND, "version": VERSION, "graph2vid": __version__, "options": dict(run.context.options)}
        write_json(run.out / "run.json", about)
        context = replace(run.context, problems=found.unusable)
        if run.options.adapt:
            from graph2vid.batch.learning import learn_models

            context = replace(context, adapted=learn_models(found.rows, context, run.out / "adapted"))
            _log(run.out, "adapted", {"models": sorted(context.adapted.values())})
        usable = replace(run, context=context)
        driver = _Driver(usable, found, parts, pool, Summary(len(found)))
        for _ in range(_TRIES):
            wanted = driver.work()
            with contextlib.suppress(LostRowsError):
                parts.publish(wanted)
                break
        else:
            raise Graph2VidError(
                f"{parts.folder}: parts are damaged as soon as they are written, or files of the manifest change while "
                "they are worked on; nothing is published: check the disk, then --resume"
            )
        driver.summary.seconds = time.perf_counter() - began
        _log(run.out, "end", driver.summary.to_json())
    return driver.summary


def check(manifest: Path, copy: Path, context: Context, pool: WorkerPool) -> Manifest:
    """Call :func:`graph2vid.batch.manifest.read_manifest` in a worker: reading a damaged Parquet file may crash."""
    pool.set_up([context])
    (found,) = pool.run([[_CheckTask(manifest, copy)]])
    return found


@dataclass(frozen=True)
class _CheckTask:
    """The check of a manifest, as a task of a worker."""

    manifest: Path
    copy: Path

    def message(self) -> bytes:
        return json.dumps({"manifest": str(self.manifest), "copy": str(self.copy)}).encode()

    def answer(self, data: bytes) -> Manifest:
        """Return what the worker found; raise and warn as it did."""
        table = from_bytes(data)
        told = json.loads(table.schema.metadata[TOLD])
        for message in told["warnings"]:
            warnings.warn(message, stacklevel=6)
        if "error" in told:
            kind, message = told["error"]
            raise getattr(errors, kind, Graph2VidError)(message)
        ids = table.column("id").combine_chunks()
        problems = [Problem(*problem) for problem in told["problems"]]
        return Manifest(self.manifest, Path(told["rows"]), ids, told["kinds"], problems, told["unreadable"])

    def split(self) -> list[_CheckTask]:
        return [self]

    def give_up(self, reason: str) -> Manifest:
        raise FormatError(f"{self.manifest} is damaged, or too large: {reason}")


def refuse_unusable(manifest: Manifest, on_error: str) -> None:
    """Raise if a manifest cannot be worked on: as a whole, or with ``on_error="stop"`` any of its rows."""
    none_left = not manifest.fatal and len(manifest.unusable) == len(manifest)
    if problems := manifest.problems if on_error == "stop" or none_left else manifest.fatal:
        more = f" (and {len(problems) - 1} more: graph2vid batch --check lists them)" if len(problems) > 1 else ""
        raise InputError(f"{manifest.path}, {problems[0]}{more}")


@dataclass
class _Driver:
    """All that working through a manifest takes; ``attempt`` is what this run is to rows that were tried before.

    Results are gathered to parts of a good size, but never kept waiting for long.
    """

    run: Run
    manifest: Manifest
    parts: Parts
    pool: WorkerPool
    summary: Summary
    attempt: int | None = None
    waiting: list[Any] = field(default_factory=list)
    since: float = 0.0

    def work(self) -> Any:
        """Do all rows that have no sound result; return id and digest of all rows, as :meth:`Parts.publish` wants."""
        damaged = self.parts.discard_damaged()
        self.summary.damaged += damaged
        known = self.parts.known()
        ids = self.manifest.ids
        digests = self._digests(pc.is_in(ids, value_set=known.column("id")))
        wanted = pa.Table.from_arrays([ids, digests], ["id", "digest"])
        first, attempt = self.attempt is None, self.attempt or 0
        if first and self.run.options.retry_failed and len(known):
            attempt = (pc.max(known.column("attempt")).as_py() or 0) + 1
        self.attempt = attempt
        done = self._settled(known, wanted, first)
        self._tell(damaged)
        if len(done) == len(ids):
            return wanted
        job = Job(self.manifest.rows, wanted, done, attempt, self.manifest.kinds, self.run.context, self.run.options)
        begin = {"rows": len(ids), "skipped": len(done), "damaged": damaged, "engine": self.run.options.engine}
        _log(self.parts.out, "begin", begin)
        try:
            self._fail_unreadable(job)
            self._engine(job)
        finally:
            self._flush()
        return wanted

    def _settled(self, known: Any, wanted: Any, first: bool) -> Any:
        """Return the ids of rows that are left as they are; the first time they and others are counted, too."""
        if not len(known):
            return pc.unique(known.column("id"))
        now = known.filter(is_wanted(known, wanted))
        failed = pc.equal(now.column("status"), FAILED)
        left = pc.invert(pc.and_(failed, pc.less(now.column("attempt"), self.attempt)))
        sound, failed = now.filter(left), failed.filter(left)
        done = pc.unique(sound.column("id"))
        if first:
            before = pc.unique(known.column("id"))
            there = pc.sum(pc.is_in(before, value_set=wanted.column("id"))).as_py() or 0
            self.summary.skipped = len(done)
            self.summary.failed_before = len(done) - len(pc.unique(sound.column("id").filter(pc.invert(failed))))
            self.summary.removed = len(before) - there
            self.summary.changed = there - len(pc.unique(now.column("id")))
        return done

    def _engine(self, job: Job) -> None:
        if not sum(job.kinds.values()):
            return
        if job.options.engine == "ray":
            from graph2vid.batch.on_ray import run_ray

            run_ray(job, self.parts, self._count)
            return
        workers = job.options.workers or cpu_count()
        shares = _processors(workers) if job.kinds["speech"] else [()] * workers
        contexts = [replace(job.context, workers=workers, processors=share) for share in shares]
        self.pool.set_up(contexts, job.options.row_seconds)
        found = ([RowsTask(one, job.attempt, job.context) for one in each] for each in stretches(job, workers))
        for table in self.pool.run(found, idle=self._flush_when_due):
            self._keep(table)

    def _digests(self, asked: Any) -> Any:
        """Return the digests of rows of the manifest; None of those that are not asked for."""
        if not pc.any(asked).as_py():
            return pa.nulls(len(asked), pa.binary())
        names = self.manifest.ids.filter(asked)
        found = {name: _digest_of(why) for name, why in self.manifest.unreadable.items()}
        if len(self.manifest) > len(found):
            for table in tables(self.manifest.rows):
                rows = decode(table.filter(pc.is_in(texts(table, "id"), value_set=names)), self.run.context)
                found |= zip((row.id for row in rows), row_digests(rows, self.run.context), strict=True)
        chosen = zip(self.manifest.ids.to_pylist(), asked.to_pylist(), strict=True)
        return strings(found[name] if ask else None for name, ask in chosen).view(pa.binary())

    def _fail_unreadable(self, job: Job) -> None:
        """Give rows that no worker can read their results."""
        unreadable = self.manifest.unreadable
        if left := sorted(set(unreadable) - set(job.done.to_pylist())):
            reasons = [unreadable[name] for name in left]
            self._keep(failures(left, reasons, job.attempt, [_digest_of(reason) for reason in reasons]))

    def _tell(self, damaged: int) -> None:
        """Warn of what is not as an earlier run left it, before the work begins."""
        words = {
            "part{} damaged, or of an older version: their rows are done again": damaged,
            "row{} changed since they were done: they are done again": self.summary.changed,
            "row{} no longer in the manifest: they are left out": self.summary.removed,
        }
        if told := [f"{count:,} {text.format('s'[: count != 1])}" for text, count in words.items() if count]:
            warnings.warn(f"{self.parts.out}: {'; '.join(told)}", stacklevel=4)

    def _keep(self, table: Any) -> None:
        """Take results, and commit them with others."""
        failed = []
        if self.run.options.on_error == "stop":
            bad = pc.equal(table.column("status"), FAILED)
            failed, table = table.filter(bad).slice(0, 1).to_pylist(), table.filter(pc.invert(bad))
        if not self.waiting:
            self.since = time.monotonic()
        self.waiting.append(table.replace_schema_metadata(None))
        self._flush_when_due()
        self._count(table)
        for first in failed:
            raise StoppedError(
                f"stopped at row {first['id']!r}: {first['error']} (what is done is kept; --resume goes on)"
            )

    def _count(self, table: Any) -> None:
        """Count results that are committed, and tell of them."""
        summary = self.summary
        failed = table.column("status").to_pylist().count(FAILED)
        summary.failed += failed
        summary.done += len(table) - failed
        summary.reasons.update(reason for reason in table.column("error").to_pylist() if reason)
        stages: dict[str, float] = json.loads((table.schema.metadata or {}).get(SECONDS, b"{}"))
        for stage, seconds in stages.items():
            summary.stage_seconds[stage] = summary.stage_seconds.get(stage, 0.0) + seconds
        _log(self.parts.out, "batch", {"rows": len(table), "stages": stages})
        if self.run.progress is not None:
            self.run.progress(summary.done + summary.failed, summary.failed, summary.rows - summary.skipped)

    def _flush_when_due(self) -> None:
        """Commit what waits, if it is much or has waited for long."""
        if sum(map(len, self.waiting)) >= _PART_ROWS or time.monotonic() - self.since > _PART_SECONDS:
            self._flush()

    def _flush(self) -> None:
        """Commit what waits."""
        waiting, self.waiting = self.waiting, []
        if waiting:
            self.parts.commit(pa.concat_tables(waiting))


def _digest_of(reason: str) -> bytes:
    """Return what stands for the content of a row that cannot be read."""
    return hashlib.sha256(reason.encode()).digest()


def _processors(workers: int) -> list[tuple[int, ...]]:
    """Deal the processors out to the workers; where there are more workers, they share."""
    known = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return [tuple(known[at::workers] or known[at % max(len(known), 1) :][:1]) for at in range(workers)]


def _log(out: Path, event: str, what: Mapping[str, Any]) -> None:
    """Add a line to the log of the run, which is for people and is not among the results."""
    line = {"time": round(time.time(), 3), "event": event, **what}
    with contextlib.suppress(OSError), (out / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")

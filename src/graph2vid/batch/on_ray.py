"""The engine ``ray``: actors read the rows themselves, take them through the stages and commit the results."""

from __future__ import annotations

import logging
import math
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graph2vid.batch.batches import Batch, Job, RowsTask, stretches
from graph2vid.batch.parts import Parts, is_wanted, read_part
from graph2vid.batch.reaper import reaped
from graph2vid.batch.results import FAILED
from graph2vid.batch.workers import WorkerPool
from graph2vid.errors import Graph2VidError, InputError, needing

STOPPED = "stopped at row"

_PART_ROWS = 1024
_AHEAD = 2  # calls of an actor that are under way, so that it never waits for the next
# Of a processor, as Ray counts them: an actor uses a whole one, but where machines are lost and actors move together,
# there must still be room for all of them.
_SHARE = 0.25
_RESTARTS = 16  # of an actor, and tries of what it was at
_TRIES = 3
_STORE_BYTES = 256 << 20  # of a cluster that is started for the run: neither rows nor results go through it
_POLL_SECONDS = 1.0


class StageActor:
    """Takes rows through the stages, in a worker process under guard, and commits the results.

    Parameters
    ----------
    job : Job
    out : str
        The folder of the run.
    """

    def __init__(self, job: Job, out: str) -> None:
        self._job, self._parts = job, Parts(out)
        self._pool = WorkerPool()
        self._pool.set_up([job.context], job.options.row_seconds)

    def work(self, batches: Sequence[Batch]) -> None:
        """Do all rows of some batches that lie together. Tried again, they give the same parts."""
        tasks = [RowsTask(batch, self._job.attempt, self._job.context) for batch in batches]
        waiting: list[Any] = []
        try:
            for table in self._pool.run([tasks]):
                waiting.append(self._good(table.replace_schema_metadata(None)))
                if sum(map(len, waiting)) >= _PART_ROWS:
                    self._flush(waiting)
        finally:
            self._flush(waiting)

    def _good(self, table: Any) -> Any:
        """Return results that are kept; where a failure ends the run, it does so."""
        if self._job.options.on_error == "stop":
            bad = pc.equal(table.column("status"), FAILED)
            for row in table.filter(bad).slice(0, 1).to_pylist():
                self._parts.commit(table.filter(pc.invert(bad)))
                raise Graph2VidError(f"{STOPPED} {row['id']!r}: {row['error']}")
        return table

    def _flush(self, waiting: list[Any]) -> None:
        if waiting:
            self._parts.commit(pa.concat_tables(waiting))
            waiting.clear()


def run_ray(job: Job, parts: Parts, count: Callable[[Any], None]) -> None:
    """Work on all rows; results are committed to ``parts``, and handed to ``count`` as they are seen there."""
    with _cluster(job) as ray, _watched(parts, count):
        _check_gpus(job, ray)
        for further in reversed(range(_TRIES)):
            try:
                _work(job, parts, ray)
            except Exception as error:
                # Ray restarts what is lost, but not for ever. What is committed stays.
                if STOPPED in str(error) or not further:
                    raise _in_one_line(error) from error
                job = replace(job, done=_committed(job, parts))
            else:
                return


def _work(job: Job, parts: Parts, ray: Any) -> None:
    """Deal the rows out to actors, which stay until all is done."""
    workers = job.options.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
    beside = math.ceil(workers / max(1, sum(bool(node["Alive"]) for node in ray.nodes())))
    there = replace(job, rows=job.rows.resolve())  # which every machine sees under this name, as it does the results
    given = replace(there, wanted=None, done=None, context=replace(job.context, workers=beside))
    actor = ray.remote(StageActor).options(
        num_cpus=_SHARE,
        num_gpus=job.options.gpus if job.options.gpus and sum(job.kinds.values()) > job.kinds["arrays"] else None,
        max_restarts=_RESTARTS,
        max_task_retries=_RESTARTS,
        scheduling_strategy="SPREAD",
    )
    actors = [actor.remote(given, str(parts.out.resolve())) for _ in range(workers)]
    waiting = {}
    try:
        left = stretches(there, workers)
        idle = actors * _AHEAD
        while True:
            for one, batches in zip(idle, left, strict=False):
                waiting[one.work.remote(batches)] = one
            if not waiting:
                return
            done, _ = ray.wait(list(waiting), num_returns=1)
            ray.get(done)
            idle = [waiting.pop(each) for each in done]
    finally:
        for one in actors:
            with suppress(Exception):  # of many kinds: it, or the cluster, has ended
                ray.kill(one)


def _committed(job: Job, parts: Parts) -> Any:
    """Return the ids of rows that need no more work."""
    known = parts.known()
    settled = pc.or_(pc.equal(known.column("attempt"), job.attempt), pc.not_equal(known.column("status"), FAILED))
    return pc.unique(known.filter(pc.and_kleene(settled, is_wanted(known, job.wanted))).column("id"))


def _check_gpus(job: Job, ray: Any) -> None:
    """Refuse to wait for GPUs that will never be there."""
    there = ray.cluster_resources().get("GPU", 0.0)
    if sum(job.kinds.values()) > job.kinds["arrays"] and there < job.options.gpus:
        raise InputError(
            f"{job.options.gpus:g} GPUs for each actor are asked for (--gpus), but the Ray cluster has "
            f"{f'{there:g}' if there else 'none'}: leave --gpus out, or name a cluster that has them (--address)"
        )


@contextmanager
def _cluster(job: Job) -> Iterator[Any]:
    """Yield ray on a cluster: the one at hand, the one at the address, or one started for the run."""
    with needing("the engine ray needs the package ray", "ray"):
        import ray
    with ExitStack() as ending:
        if not ray.is_initialized():
            ending.enter_context(reaped(str(Path(ray.__file__).parent)))
            ending.callback(ray.shutdown)
            _begin(job, ray)
        yield ray


def _begin(job: Job, ray: Any) -> None:
    """Connect to the cluster at the address, or start one."""
    address = job.options.address
    own: dict[str, Any] = {"include_dashboard": False, "object_store_memory": _STORE_BYTES}
    if address is None and job.options.workers is not None:
        own["num_cpus"] = job.options.workers
    terminate = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False, **(own if address is None else {}))
    except Exception as error:  # of many kinds: no answer, no time, no room
        told = " ".join(str(error).split())
        raise Graph2VidError(f"cannot use the Ray cluster at {address or 'this machine'}: {told}") from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, terminate)  # Ray has put its own handler in its place, and a dump of the stack


@contextmanager
def _watched(parts: Parts, count: Callable[[Any], None]) -> Iterator[None]:
    """Hand parts that appear to ``count``, while the work goes on and once more at the end."""
    seen = set(parts.files())
    ending = threading.Event()

    def look() -> None:
        for path in parts.files():
            if path not in seen and (table := read_part(path)) is not None:
                seen.add(path)
                count(table)

    def poll() -> None:
        while not ending.wait(_POLL_SECONDS):
            look()

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
        look()


def _in_one_line(error: BaseException) -> Graph2VidError:
    """Return an error of Ray, whose text holds the stacks of several processes, as one that people can read."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    stopped = [line[line.index(STOPPED) :] for line in lines if STOPPED in line]
    told = stopped[0] if stopped else f"the Ray job failed: {lines[-1]}"
    return Graph2VidError(f"{told} (what is done is kept; --resume goes on)")

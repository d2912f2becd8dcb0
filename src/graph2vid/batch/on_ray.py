"""The engine ``ray``: Ray Data reads the rows, actors take them through the stages, write tasks commit the results."""

from __future__ import annotations

import logging
import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graph2vid.batch.batches import BATCH_ROWS, Job, RowsTask
from graph2vid.batch.columns import texts
from graph2vid.batch.parts import Parts, is_wanted, read_part
from graph2vid.batch.reaper import reaped
from graph2vid.batch.results import FAILED, NO_RESULTS, RESULT_SCHEMA
from graph2vid.batch.settings import KINDS
from graph2vid.batch.workers import WorkerPool
from graph2vid.errors import Graph2VidError, InputError, needing

STOPPED = "stopped at row"

_BLOCK_BYTES = 4 << 20
_MOST_BLOCKS = 20_000  # a driver keeps track of so many with ease
_PART_ROWS = 64
# Of a processor, as Ray counts them: an actor uses a whole one, but where machines are lost and actors move together,
# the tasks between them must still find room, or all would wait for each other.
_SHARE = 0.25
_LITTLE = {"num_cpus": 0.1}
_TRIES = 3
_STORE_BYTES = 256 << 20  # of a cluster that is started for the run: results are small, rows stream through
_POLL_SECONDS = 1.0


class StageActor:
    """Takes tables of rows through the stages, in a worker process under guard."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._pool = WorkerPool(processors=1)
        self._pool.set_up([job.context], job.options.row_seconds)

    def __call__(self, table: Any) -> Any:
        """Return the results of rows."""
        table = table.filter(pc.invert(pc.is_in(texts(table, "id"), value_set=self._job.done)))
        task = RowsTask(table, self._job.attempt, self._job.context)
        tables = self._pool.run([[task]]) if len(table) else ()
        found = pa.concat_tables([NO_RESULTS, *(part.replace_schema_metadata(None) for part in tables)])
        if self._job.options.on_error == "stop":
            for row in found.filter(pc.equal(found.column("status"), FAILED)).slice(0, 1).to_pylist():
                raise Graph2VidError(f"{STOPPED} {row['id']!r}: {row['error']}")
        return found


def run_ray(job: Job, parts: Parts, count: Callable[[Any], None]) -> None:
    """Work on all rows; results are committed to ``parts``, and handed to ``count`` as they are seen there."""
    with _cluster(job) as ray, _watched(parts, count):
        _check_gpus(job, ray)
        for further in reversed(range(_TRIES)):
            try:
                _pipeline(job, ray).write_datasink(_sink(parts.out.resolve(), ray), ray_remote_args=dict(_LITTLE))
            except Exception as error:
                # Ray restarts what is lost, except for some actors of its own. What is committed stays.
                if STOPPED in str(error) or not further:
                    raise _in_one_line(error) from error
                job = replace(job, done=_committed(job, parts))
            else:
                return


def _pipeline(job: Job, ray: Any) -> Any:
    """Return the data set of results, which is worked on when it is written."""
    rows = ray.data.read_parquet(str(job.rows.resolve()), **_LITTLE)
    workers = job.options.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
    beside = math.ceil(workers / max(1, sum(bool(node["Alive"]) for node in ray.nodes())))
    # A block is the unit of work of an actor, and of what is done again when one is lost.
    smallest = min(BATCH_ROWS[kind] for kind in KINDS if job.kinds[kind])
    block = max(smallest, sum(job.kinds.values()) // _MOST_BLOCKS)
    return rows.repartition(target_num_rows_per_block=block).map_batches(
        StageActor,
        fn_constructor_args=(replace(job, wanted=None, context=replace(job.context, workers=beside)),),
        batch_size=BATCH_ROWS["arrays"],
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=workers),
        num_cpus=_SHARE,
        num_gpus=job.options.gpus if job.options.gpus and sum(job.kinds.values()) > job.kinds["arrays"] else None,
    )


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
        import ray.data
    with ExitStack() as ending:
        if not ray.is_initialized():
            ending.enter_context(reaped(str(Path(ray.__file__).parent)))
            ending.callback(ray.shutdown)
            _begin(job, ray)
        context = ray.data.DataContext.get_current()
        changed = {
            "target_max_block_size": _BLOCK_BYTES,
            "enable_progress_bars": False,
            "print_on_execution_start": False,
            # The newer reader of Parquet begins with actors that are not restarted when their machine is lost.
            "use_datasource_v2": False,
        }
        for name, value in changed.items():
            if hasattr(context, name):
                ending.callback(setattr, context, name, getattr(context, name))
                setattr(context, name, value)
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        yield ray


def _begin(job: Job, ray: Any) -> None:
    """Connect to the cluster at the address, or start one."""
    address = job.options.address
    own: dict[str, Any] = {"include_dashboard": False, "object_store_memory": _STORE_BYTES}
    if address is None and job.options.workers is not None:
        own["num_cpus"] = max(2, job.options.workers + 1)  # the reader and the writer want a share, too
    terminate = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False, **(own if address is None else {}))
    except Exception as error:  # of many kinds: no answer, no time, no room
        told = " ".join(str(error).split())
        raise Graph2VidError(f"cannot use the Ray cluster at {address or 'this machine'}: {told}") from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, terminate)  # Ray has put its own handler in its place, and a dump of the stack


def _sink(out: Path, ray: Any) -> Any:
    """Return what writes results on whichever machine they are: parts, committed once."""
    base: Any = ray.data.Datasink

    class PartsDatasink(base):  # type: ignore[misc]
        """Commits the results of a write task as one part."""

        def write(self, blocks: Any, ctx: Any) -> int:
            tables = [block if isinstance(block, pa.Table) else pa.Table.from_pandas(block) for block in blocks]
            table = pa.concat_tables([NO_RESULTS, *(table.cast(RESULT_SCHEMA) for table in tables if len(table))])
            Parts(out).commit(table)
            return len(table)

        @property
        def min_rows_per_write(self) -> int:
            return _PART_ROWS

    return PartsDatasink()


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

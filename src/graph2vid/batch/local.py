"""The engine ``local``: worker processes on this machine, fed from a bounded queue."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

from graph2vid.alignment import cpu_count
from graph2vid.batch.fork_server import Nursery
from graph2vid.batch.guarded_worker import Guard
from graph2vid.batch.job import Job, stretches
from graph2vid.batch.settings import RunOptions
from graph2vid.batch.stages import STAGES


@contextmanager
def ready_workers(options: RunOptions) -> Iterator[Nursery]:
    """Start what workers come from, so that it loads while the manifest is checked; all workers end at the end."""
    with closing(Nursery(_threads(_workers(options)))) as nursery:
        yield nursery


def _workers(options: RunOptions) -> int:
    return options.workers or cpu_count()


def _threads(workers: int) -> int:
    return max(1, cpu_count() // workers)


def _processors(workers: int) -> list[tuple[int, ...]]:
    """Deal the processors out to the workers; where there are more workers, they share."""
    known = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return [tuple(known[at::workers] or known[at % max(len(known), 1) :][:1]) for at in range(workers)]


def run_local(job: Job, nursery: Nursery, keep: Callable[[Any], None], meanwhile: Callable[[], None]) -> None:
    """Work on all rows; ``keep`` is handed the results, table by table, as they come.

    While none come, ``meanwhile`` is called every second. An error of either ends the work at once.
    """
    workers = _workers(job.options)
    context = replace(job.context, threads=_threads(workers), workers=workers)
    waiting: queue.Queue[Any] = queue.Queue(maxsize=2 * workers)
    found: queue.Queue[Any] = queue.Queue(maxsize=2 * workers)
    ending = threading.Event()
    shares = _processors(workers) if job.kinds["speech"] else [()] * workers
    guards = [Guard(replace(context, processors=share), job.options.row_seconds, nursery) for share in shares]

    def serve(guard: Guard) -> None:
        """Feed one worker process until there is nothing more to do."""
        try:
            with guard:
                while (stretch := waiting.get()) is not None:
                    for batch in stretch:
                        if ending.is_set():
                            break
                        found.put(guard.run(batch, tuple(STAGES), job.attempt))
        except BaseException as error:
            found.put(error)
        found.put(None)

    def feed() -> None:
        try:
            for stretch in stretches(job, workers):
                if not _put(waiting, stretch, ending):
                    return
        except BaseException as error:
            found.put(error)
        for _ in threads[1:]:
            _put(waiting, None, ending)

    threads = [threading.Thread(target=feed, daemon=True)]
    threads += [threading.Thread(target=serve, args=(guard,), daemon=True) for guard in guards]
    for thread in threads:
        thread.start()
    serving = workers
    try:
        while serving:
            try:
                answer = found.get(timeout=1.0)
            except queue.Empty:
                meanwhile()
                continue
            if answer is None:
                serving -= 1
            elif isinstance(answer, BaseException):
                raise answer
            else:
                keep(answer)
    finally:
        ending.set()
        for guard in guards:
            guard.stop()
        _let_go(threads, waiting, found)


def _put(line: queue.Queue[Any], value: Any, ending: threading.Event) -> bool:
    """Put something into a full queue as soon as there is room; give up when the work is ending."""
    while not ending.is_set():
        try:
            line.put(value, timeout=0.1)
        except queue.Full:
            continue
        return True
    return False


def _let_go(threads: list[threading.Thread], waiting: queue.Queue[Any], found: queue.Queue[Any]) -> None:
    """Wake threads that wait for a queue, until all have ended; workers end with their threads."""
    while any(thread.is_alive() for thread in threads):
        for line in (waiting, found):
            try:
                while True:
                    line.get_nowait()
            except queue.Empty:
                pass
        for _ in threads:
            try:
                waiting.put_nowait(None)
            except queue.Full:
                break
        for thread in threads:
            thread.join(timeout=0.05)

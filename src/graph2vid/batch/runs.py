"""Runs over whole corpora: what they are asked, and what they tell.

Only the standard library is imported here: the workers of a run start first, and load while the rest does.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from graph2vid import __version__
from graph2vid.batch.settings import Context, Kind, RunOptions, check_option
from graph2vid.batch.workers import WorkerPool
from graph2vid.errors import Graph2VidError, MissingDependencyError


@dataclass(frozen=True)
class Problem:
    """Something wrong with a manifest.

    Attributes
    ----------
    place : str
        Where: ``line 17`` or ``row 17``.
    id : str or None
        Of the row (its place, where it has none that can be read); None where no run can pass over it.
    text : str
        What is wrong, and what to do.
    """

    place: str
    id: str | None
    text: str

    def __str__(self) -> str:
        named = "" if self.id is None else f" ({self.id!r})"
        return f"{self.place}{'' if self.id == self.place else named}: {self.text}"


@dataclass(frozen=True, eq=False)
class Manifest:
    """A manifest that was read and checked.

    Attributes
    ----------
    path : Path
    rows : Path
        A Parquet file with its rows: the manifest itself where it holds arrays, else a copy sorted by procedure.
    ids : Arrow array of str
    kinds : dict
        How many rows have evidence from arrays, captions, speech.
    problems : list of Problem
    unreadable : dict of str to str
        Rows that are not in ``rows``, since they cannot be read: by id, why.
    """

    path: Path
    rows: Path
    ids: Any
    kinds: dict[Kind, int]
    problems: list[Problem] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def fatal(self) -> list[Problem]:
        """The problems that no run can pass over."""
        return [problem for problem in self.problems if problem.id is None]

    @property
    def unusable(self) -> dict[str, str]:
        """By id: what is wrong with a row."""
        return {problem.id: problem.text for problem in reversed(self.problems) if problem.id is not None}


def reason_of(error: BaseException) -> str:
    """Return why something failed, in one line."""
    if isinstance(error, MemoryError):
        return "out of memory"
    said = printable(" ".join(str(error).split()))
    return said if isinstance(error, Graph2VidError) else f"{type(error).__name__}: {said}"


def printable(text: str) -> str:
    """Return text in which nothing is left that no file can hold: lone surrogates are written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


AnyPath: TypeAlias = str | os.PathLike[str]

Progress: TypeAlias = Callable[[int, int, int], None]
"""Is told how many rows are done, how many of them failed, and how many there are."""


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

    def to_json(self) -> dict[str, Any]:
        """Return the summary as a JSON document."""
        return {
            "format": "graph2vid-batch-summary",
            "version": 1,
            "graph2vid": __version__,
            **asdict(self),
            "reasons": dict(self.reasons.most_common()),
            "videos_per_second": self.videos_per_second,
        }


@dataclass(frozen=True)
class Run:
    """What a run is asked; see :func:`run_batch`."""

    manifest: Path
    out: Path
    options: RunOptions
    context: Context
    progress: Progress | None = None
    checked: Callable[[Manifest], None] | None = None


def run_batch(
    manifest: AnyPath,
    out: AnyPath,
    *,
    options: RunOptions | None = None,
    row_options: Mapping[str, Any] | None = None,
    documents: bool = False,
    cache: AnyPath | None = None,
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
    options = options or RunOptions()
    with _pool() as pool:
        from graph2vid.batch.driver import drive

        context = _context(manifest, row_options, cache)
        if documents:
            context = replace(context, documents=str(Path(out).resolve() / "documents"))
        return drive(Run(Path(manifest), Path(out), options, context, progress, checked), pool)


def check_manifest(
    manifest: AnyPath,
    row_options: Mapping[str, Any] | None = None,
    cache: AnyPath | None = None,
) -> Manifest:
    """Read and check a manifest as :func:`run_batch` does, and leave it at that."""
    with tempfile.TemporaryDirectory(prefix="graph2vid-") as folder, _pool() as pool:
        from graph2vid.batch.driver import check

        context = _context(manifest, row_options, cache)
        return check(Path(manifest), Path(folder) / "rows.parquet", context, pool)


def _pool() -> WorkerPool:
    if find_spec("pyarrow") is None:
        raise MissingDependencyError("batches need the package pyarrow", extra="batch")
    return WorkerPool()


def _context(manifest: AnyPath, row_options: Mapping[str, Any] | None, cache: AnyPath | None) -> Context:
    given = {name: check_option(name, value) for name, value in (row_options or {}).items() if value is not None}
    folder = str(Path(manifest).resolve().parent)
    return Context(folder, None if cache is None else str(cache), given)

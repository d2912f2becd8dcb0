"""What is handed on of each video of a batch: exports and clips beside its document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graph2vid._files import write_text
from graph2vid.errors import Graph2VidError


@dataclass
class Published:
    """How many files were written, how many were there already, and why others were not.

    Attributes
    ----------
    written, kept : int
    reasons : Counter
        Refusals, by what the message says.
    """

    written: int = 0
    kept: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


def publish(
    documents: Path,
    formats: Sequence[str] = (),
    *,
    clips: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Published:
    """Write exports, and a folder of clips, beside each document of a batch.

    What is newer than its document is left as it is, so that a run that was cut short goes on. A format or a video
    that refuses does not stop the others.

    Parameters
    ----------
    documents : Path
        The folder that ``run_batch(documents=True)`` wrote.
    formats : sequence of str
        Names of formats, such as ``"vtt"``.
    clips : bool
        Whether clips and stills are cut (:func:`graph2vid.grounding.write_clips`), into a folder named as the document.
    progress : callable, optional
        Called as (done, total).
    """
    from graph2vid.grounding import FORMATS, HOW_TO, Grounding, export

    told = Published()
    known = {FORMATS.get(name).suffix for name in FORMATS}
    paths = [path for path in sorted(documents.glob("*/*.json")) if not _is_export(path, known)]
    for done, path in enumerate(paths):
        if progress is not None:
            progress(done, len(paths))
        targets = {name: path.with_name(path.stem + FORMATS.get(name).suffix) for name in formats}
        folder = path.with_suffix("")
        wanted = {name: target for name, target in targets.items() if not _is_newer(target, path)}
        cut = clips and not _is_newer(folder / HOW_TO, path)
        told.kept += len(targets) - len(wanted) + (clips and not cut)
        if not wanted and not cut:
            continue
        found = Grounding.load(path)
        for name, target in wanted.items():
            try:
                write_text(target, export(found, name).text)
                told.written += 1
            except Graph2VidError as error:
                told.reasons[f"{name}: {error}"] += 1
        if cut:
            try:
                found.clips(folder)
                told.written += 1
            except Graph2VidError as error:
                told.reasons[f"clips: {error}"] += 1
    return told


def _is_export(path: Path, suffixes: set[str]) -> bool:
    """Say whether a file is an export in JSON of a document beside it."""
    names = (path.name.removesuffix(suffix) for suffix in suffixes if path.name.endswith(suffix))
    return any(path.with_name(f"{name}.json").exists() for name in names)


def _is_newer(path: Path, document: Path) -> bool:
    return path.exists() and path.stat().st_mtime_ns >= document.stat().st_mtime_ns

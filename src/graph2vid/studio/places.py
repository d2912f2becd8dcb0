"""Where files may lie: names that lead nowhere else, not even through links."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from pathlib import Path, PurePosixPath

from graph2vid._values import repaired
from graph2vid.errors import Graph2VidError, InputError
from graph2vid.evidence import SUFFIXES, TRANSCRIPT_SUFFIXES, read_captions

VIDEO_SUFFIXES = (".mp4", ".m4v", ".mov", ".webm", ".mkv", ".ogv", ".avi")
CAPTION_SUFFIXES = (*SUFFIXES, *TRANSCRIPT_SUFFIXES)
_KINDS = dict.fromkeys(CAPTION_SUFFIXES, "captions") | dict.fromkeys(VIDEO_SUFFIXES, "video")
MOST_CAPTIONS = 16 << 20
"""Bytes of a file of captions."""

_MOST_LISTED = 2000
_MOST_DEPTH = 4
_MOST_NAME = 150  # bytes; file systems allow 255, and a temporary name is longer
_UNFIT = re.compile(r"[^a-z0-9]+")
_PROJECT = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")

# How files of these kinds begin (place in the file, bytes).
_HEADS = (
    *((4, box) for box in (b"ftyp", b"styp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot")),
    *((0, sign) for sign in (b"\x1a\x45\xdf\xa3", b"OggS", b"RIFF")),
)


class OutsideError(InputError):
    """A name that leads out of the folder it should lie in."""

    status = 404


def inside(folder: Path, name: str) -> Path:
    """Return the path of ``name`` in ``folder``; an error if it would lie anywhere else.

    Parameters
    ----------
    folder : Path
    name : str
        A path with ``/``; no part of it may be hidden, a link, or lead upwards.
    """
    parts = PurePosixPath(name).parts
    is_plain = bool(parts) and name == "/".join(parts) and "\\" not in name and name.isprintable()
    paths = [*accumulate(parts, _child, initial=folder)] if is_plain else [folder]
    is_hidden = any(part.startswith(".") for part in parts) or any(path.is_symlink() for path in paths[1:])
    if not is_plain or is_hidden or not paths[-1].resolve().is_relative_to(folder.resolve()):
        raise OutsideError(f"{name!r} is no name of a file here")
    return paths[-1]


def _child(folder: Path, name: str) -> Path:
    """Return the path of ``name`` in ``folder``; a file whose name is not UTF-8 goes by that with the rest replaced."""
    path = folder / name
    if "\ufffd" in name and folder.is_dir() and not path.exists():
        candidates = [entry for entry in folder.iterdir() if repaired(entry.name) == name]
        path = candidates[0] if len(candidates) == 1 else path
    return path


def is_project_name(name: str) -> bool:
    """Whether a folder of this name can be a project."""
    return _PROJECT.fullmatch(name) is not None


def project_name(title: str) -> str:
    """Return a name for the folder of a project with this title."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return _UNFIT.sub("-", plain).strip("-")[:40].strip("-") or "project"


def upload_name(name: str) -> str:
    """Check the name of a file that is handed in, and return it."""
    is_short = name.strip() and len(name.encode("utf-8", "replace")) <= _MOST_NAME
    if not is_short or name.startswith(".") or set(name) & set('/\\:*?"<>|') or not name.isprintable():
        raise InputError(f"{name[:60]!r} cannot be the name of a file: use letters, digits, spaces, - and _")
    return name


def kind_of(name: str) -> str | None:
    """Return ``"video"``, ``"captions"`` or, of other files, None."""
    return _KINDS.get(PurePosixPath(name).suffix.lower())


def begins_like_video(head: bytes) -> bool:
    """Whether a file that begins so may be a video."""
    return any(head[at:].startswith(sign) for at, sign in _HEADS)


def _is_what_it_is_named(path: Path, kind: str) -> bool:
    """Whether a file holds what its suffix says: many end in .json or .txt, and few of those are transcripts."""
    try:
        about = path.stat()
        if kind == "video":
            with path.open("rb") as file:
                return begins_like_video(file.read(64))
        if path.suffix.lower() not in TRANSCRIPT_SUFFIXES:
            return True
        return about.st_size <= MOST_CAPTIONS and _holds_captions(path, about.st_mtime_ns, about.st_size)
    except OSError:
        return False


@lru_cache(maxsize=4 * _MOST_LISTED)
def _holds_captions(path: Path, changed: int, size: int) -> bool:
    """Whether captions can be read from a file, as it was when it was changed last.

    In a text a single line that begins with a time may be one of a recipe ("0:45 in the oven").
    """
    try:
        return len(read_captions(path)) >= (2 if path.suffix.lower() == ".txt" else 1)
    except Graph2VidError:
        return False


def media_in(folder: Path) -> Iterator[tuple[str, str, int]]:
    """List the videos and captions in a folder and the folders in it, as (name, kind, bytes); links are left out."""
    listed = 0
    waiting = [(folder, 0)]
    while waiting:
        here, depth = waiting.pop()
        try:
            entries = sorted(here.iterdir())
        except OSError:
            continue
        for entry in entries:
            if entry.name.startswith(".") or entry.is_symlink():
                continue
            if entry.is_dir() and depth < _MOST_DEPTH:
                waiting.append((entry, depth + 1))
            kind = kind_of(entry.name)
            if kind is not None and entry.is_file() and _is_what_it_is_named(entry, kind):
                yield repaired(entry.relative_to(folder).as_posix()), kind, entry.stat().st_size
                listed += 1
                if listed >= _MOST_LISTED:
                    return

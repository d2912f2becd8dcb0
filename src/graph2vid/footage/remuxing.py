"""Packets copied from one file into another, not decoded: with chapters, or from key frame to key frame."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from graph2vid._files import written_whole
from graph2vid.errors import Graph2VidError, InputError
from graph2vid.evidence.media import Media, opened
from graph2vid.flow import counted

if TYPE_CHECKING:
    from av import Packet
    from av.container import OutputContainer

CONTAINERS = {".mp4": "mp4", ".m4v": "mp4", ".m4a": "mp4", ".mov": "mov", ".mkv": "matroska", ".mka": "matroska"}
"""The kinds of files that are written, by the suffix of their names."""

_FIRST_PACKETS = 64
"""Among so many the earliest of each track is."""

_COPIED = ("video", "audio", "subtitle", "attachment")


class Chapter(NamedTuple):
    """A chapter: its title, and where it begins and ends, in milliseconds from the start of the file."""

    start: int
    end: int
    title: str


def write_chapters(
    source: str | os.PathLike[str], target: str | os.PathLike[str], chapters: Sequence[Chapter]
) -> list[str]:
    """Copy a video or audio file with these chapters in place of its own; nothing is encoded anew.

    Parameters
    ----------
    source : path
        The file, which is only read.
    target : path
        The copy: MP4 or Matroska, by its suffix; written under another name, and renamed when it is whole.
    chapters : sequence of Chapter
        In order of time.

    Returns
    -------
    list of str
        What could not be copied, a line each.
    """
    with copying(source, target) as (media, container, streams, notes):
        if not hasattr(container, "set_chapters"):
            raise Graph2VidError("writing chapters needs a newer version of av: pip install --upgrade av")
        found = _packets(media, streams)
        first = list(islice(found, _FIRST_PACKETS))
        # Matroska has no times below zero, which the run-in of compressed sound has: all that follows is later by it.
        late = max((-_time(one, one.pts, media) for one in first), default=Fraction(0))
        late = max(late, Fraction(0)) if container.format.name == "matroska" else Fraction(0)
        container.set_chapters([_mark(at, one, round(late * 1000)) for at, one in enumerate(chapters, start=1)])
        for packet in chain(first, found):
            _copy(packet, streams, container, media.start - late)
        if media.trouble:
            raise Graph2VidError(f"{source} cannot be copied whole: {media.trouble}")
    return notes


def _mark(number: int, chapter: Chapter, late: int) -> Any:
    start = chapter.start + late if chapter.start else 0
    times = {"start": start, "end": chapter.end + late, "time_base": Fraction(1, 1000)}
    return {"id": number, **times, "metadata": {"title": chapter.title}}


def cut(
    source: str | os.PathLike[str], target: str | os.PathLike[str], start: float, end: float
) -> tuple[float, float]:
    """Copy a stretch of a file, from the key frame at or before its start; nothing is decoded.

    Parameters
    ----------
    source, target : path
        As of :func:`write_chapters`.
    start, end : float
        Seconds.

    Returns
    -------
    start, end : float
        What the copy shows, in seconds of the source: from a key frame on, to the first packet that begins after
        ``end``.
    """
    with copying(source, target) as (media, container, streams, _):
        leading = media.video if media.video in streams else media.audio
        assert leading is not None
        seek(media, leading, start)
        begin: Fraction | None = None
        last, finished = end, set[int]()
        held: list[Packet[Any]] = []  # since the last key frame before the start, or since the first one
        for packet in _packets(media, streams):
            index, at = packet.stream.index, _time(packet, packet.pts, media)
            if _time(packet, packet.dts, media) >= end:
                finished.add(index)
                if finished >= {one for one in (media.audio, media.video) if one in streams}:
                    break
                continue
            if index == leading and packet.is_keyframe and (begin is None or at <= start):
                begin = at
                held = [one for one in held if one.stream.index != leading and _time(one, one.pts, media) >= begin]
            held.append(packet)
            if begin is not None and at > start:
                last = max(last, _write(held, streams, container, media, begin, leading))
        if begin is None:
            raise InputError(f"{source} has nothing to cut between {start:g} and {end:g} s")
        last = max(last, _write(held, streams, container, media, begin, leading))
    return float(begin), last


@contextlib.contextmanager
def copying(
    source: str | os.PathLike[str], target: str | os.PathLike[str]
) -> Iterator[tuple[Media, OutputContainer, dict[int, Any], list[str]]]:
    """Open a source, and a target with its streams: yields both, the streams by the source's index, and notes."""
    import av

    with opened(Path(source)) as media, writing(target, source) as container:
        streams: dict[int, Any] = {}
        left: list[str] = []
        for stream in media.container.streams:
            try:
                if stream.type not in _COPIED:
                    raise ValueError
                copy = container.add_stream_from_template(stream)
            except (ValueError, av.FFmpegError):
                left.append(stream.type)
                continue
            copy.metadata.update(stream.metadata)
            copy.disposition = stream.disposition
            streams[stream.index] = copy
        lost = {one for one in (media.audio, media.video) if one is not None} - streams.keys()
        if lost:
            kinds = " or ".join(sorted({media.container.streams[one].type for one in lost}))
            raise InputError(f"{target} cannot hold the {kinds} of {source} without encoding it anew: name a .mkv file")
        container.metadata.update(media.container.metadata)
        counts = {kind: left.count(kind) for kind in left if kind != "data"}  # chapters of MP4 are a track of data
        notes = [
            f"{counted(count, f'{kind} track')} left out: {Path(target).name} holds none of its kind"
            for kind, count in counts.items()
        ]
        yield media, container, streams, notes


@contextlib.contextmanager
def writing(target: str | os.PathLike[str], source: str | os.PathLike[str]) -> Iterator[OutputContainer]:
    """Open a file to be written, whole or not at all, by the suffix of its name."""
    import av

    kind = CONTAINERS.get(Path(target).suffix.lower())
    if kind is None:
        raise InputError(
            f"{target}: the name must end in {', '.join(CONTAINERS)}, which are the files that are written"
        )
    if Path(target).exists() and Path(target).samefile(source):
        raise InputError(f"{target} is the source itself, which is never changed: name another file")
    with written_whole(target) as temporary:
        try:
            with av.open(str(temporary), "w", format=kind) as container:
                yield container
        except av.FFmpegError as error:
            raise Graph2VidError(f"cannot write {target}: {error.strerror}") from error


def _packets(media: Media, streams: dict[int, Any]) -> Iterator[Packet[Any]]:
    """Yield the packets of some streams; each says when it is decoded, which Matroska does not know of the first."""
    waiting: dict[int, list[Packet[Any]]] = {}
    for packet in media.packets(*streams):
        held = waiting.setdefault(packet.stream.index, [])
        if packet.size and packet.dts is None:
            held.append(packet)
        elif packet.size:
            following = packet.dts
            for one in reversed(held):
                following = one.dts = (following or 0) - (one.duration or 1)
            yield from held
            held.clear()
            yield packet
    for held in waiting.values():
        for packet in held:
            packet.dts = packet.pts
            yield packet


def _time(packet: Packet[Any], stamp: int | None, media: Media) -> Fraction:
    """Return a time of a packet in seconds from the start of the file."""
    known = stamp if stamp is not None else packet.dts
    return Fraction(known or 0) * packet.time_base - media.start


def _write(
    held: list[Packet[Any]],
    streams: dict[int, Any],
    container: OutputContainer,
    media: Media,
    begin: Fraction,
    leading: int,
) -> float:
    """Write packets from ``begin`` on, and forget them; return where the leading track ends by them.

    Pictures that are stored after the key frame, but shown before it, build on what is not there: they are left out.
    """
    last = 0.0
    for packet in held:
        at = _time(packet, packet.pts, media)
        if at >= begin:
            if packet.stream.index == leading:
                last = max(last, float(at + (packet.duration or 0) * packet.time_base))
            _copy(packet, streams, container, media.start + begin)
    held.clear()
    return last


def _copy(packet: Packet[Any], streams: dict[int, Any], container: OutputContainer, zero: Fraction) -> None:
    """Write a packet whose times count from ``zero`` on the source's clock."""
    shift = round(zero / packet.time_base)
    packet.dts = None if packet.dts is None else packet.dts - shift
    packet.pts = None if packet.pts is None else packet.pts - shift
    packet.stream = streams[packet.stream.index]
    container.mux(packet)


def seek(media: Media, stream: int, start: float) -> None:
    """Go to the key frame at or before a time, or further back: some formats have no index, and seek too far."""
    chosen = media.container.streams[stream]
    for back in (0, 10, 60):
        at = int((Fraction(start) - back + media.start) / (chosen.time_base or 1))
        if start <= back and back:
            break
        media.container.seek(max(at, 0), stream=chosen, backward=True)
        keys = (one for one in media.packets(stream) if one.is_keyframe and one.pts is not None)
        found = next(keys, None)
        if found is not None and _time(found, found.pts, media) <= start:
            media.container.seek(max(at, 0), stream=chosen, backward=True)
            return
    media.container.seek(0)

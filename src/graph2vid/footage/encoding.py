"""Stretches of a video encoded anew: exact clips, and moving pictures (GIF)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graph2vid._files import written_whole
from graph2vid.errors import Graph2VidError, InputError
from graph2vid.evidence.media import Media, opened, upright_image
from graph2vid.footage.remuxing import seek, writing

if TYPE_CHECKING:
    from av import AudioFrame, VideoFrame

_INSTANT = 1e-6
_ENCODERS = ("libx264", "libopenh264", "mpeg4")
_QUALITY = {"crf": "18", "preset": "fast"}
_CLOCK = Fraction(1, 90_000)


def cut_precisely(
    source: str | os.PathLike[str], target: str | os.PathLike[str], start: float, end: float
) -> tuple[float, float]:
    """Encode a stretch of a file anew, from the frame that begins at or after its start to the last before its end.

    Parameters
    ----------
    source, target : path
        The target is MP4 or Matroska, by its suffix; written under another name, and renamed when it is whole.
    start, end : float
        Seconds.

    Returns
    -------
    start, end : float
        As they were given, the end not later than that of the source.
    """
    with opened(Path(source)) as media, writing(target, source) as container:
        sound = _sound(container, media)  # before anything is written, as the picture is
        picture: Any = None
        waiting: list[Any] = []
        last = start
        for frame in decoded(media, start, end, sound=sound is not None):
            last = max(last, min(media.seconds(frame) + _lasts(frame), end))
            if hasattr(frame, "samples"):
                waiting.append((frame, media.seconds(frame) - start))
            else:
                shown = _upright(frame, media)
                shown.pts, shown.time_base = round((media.seconds(frame) - start) / _CLOCK), _CLOCK
                picture = picture or _picture(container, media, shown)
                container.mux(picture.encode(shown))
            if picture is not None or media.video is None:
                for one, begins in waiting:
                    _encode_sound(container, sound, one, begins, end - start)
                waiting.clear()
        if last <= start:
            raise InputError(f"{source} has nothing to cut between {start:g} and {end:g} s")
        for stream in filter(None, (picture, sound)):
            container.mux(stream.encode(None))
    return start, min(end, last)


def write_gif(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    start: float,
    end: float,
    *,
    rate: float = 8.0,
    width: int = 320,
) -> None:
    """Write a stretch of a video as a moving picture (GIF) in 256 colours of its own.

    Parameters
    ----------
    source, target : path
    start, end : float
        Seconds.
    rate : float
        Frames per second.
    width : int
        Pixels; videos that are smaller keep their size.
    """
    import av

    with opened(Path(source)) as media, written_whole(target) as temporary:
        if media.video is None:
            raise InputError(f"{source} has no moving picture")
        try:
            with av.open(str(temporary), "w", format="gif") as container:
                stream: Any = None
                graph = None
                due = 0.0
                for frame in decoded(media, start, end, sound=False):
                    if (begins := media.seconds(frame) - start) < due - _INSTANT:
                        continue
                    due = max(due + 1 / rate, begins)
                    shown = _upright(frame, media, even=False)
                    across = min(width, shown.width)
                    shown = shown.reformat(across, max(round(shown.height * across / shown.width), 1), "rgb24")
                    shown.pts, shown.time_base = round(begins / _CLOCK), _CLOCK
                    graph = graph or _palette(shown, rate)
                    graph.push(shown)  # small by now: all are kept until the colours are chosen
                if graph is None:
                    raise InputError(f"{source} has no picture between {start:g} and {end:g} s")
                graph.push(None)
                for at, drawn in enumerate(_pulled(graph)):
                    if stream is None:
                        stream = container.add_stream("gif", rate=Fraction(rate).limit_denominator(1000))
                        stream.width, stream.height, stream.pix_fmt = drawn.width, drawn.height, "pal8"
                        stream.codec_context.time_base = 1 / Fraction(rate).limit_denominator(1000)
                    drawn.pts, drawn.time_base = at, stream.codec_context.time_base
                    container.mux(stream.encode(drawn))
                container.mux(stream.encode(None))
        except av.FFmpegError as error:
            raise Graph2VidError(f"cannot write {target}: {error.strerror}") from error


def decoded(media: Media, start: float, end: float, *, sound: bool = True) -> Iterator[Any]:
    """Yield the frames of sound and picture from ``start`` to ``end``, in the order of the file."""
    from av import FFmpegError

    leading = media.video if media.video is not None else media.audio
    seek(media, leading or 0, max(start, 0.0))
    wanted = {one for one in (media.video, media.audio if sound else None) if one is not None}
    done: set[int] = set()
    for packet in media.packets(*wanted):
        try:
            frames = packet.decode()
        except (FFmpegError, EOFError):
            continue
        for frame in frames:
            if frame.pts is None:
                continue
            begins = media.seconds(frame)
            if begins >= end - _INSTANT:
                done.add(packet.stream.index)
            elif begins >= start - _INSTANT or (hasattr(frame, "samples") and begins + _lasts(frame) > start):
                yield frame
        if done >= wanted:
            return


def _lasts(frame: Any) -> float:
    if hasattr(frame, "samples"):
        return float(frame.samples / max(frame.sample_rate, 1))
    return float(frame.duration * frame.time_base) if frame.duration and frame.time_base else 0.0


def _upright(frame: VideoFrame, media: Media, *, even: bool = True) -> VideoFrame:
    """Return a frame as it is shown: upright, with square pixels, and an even number of these each way."""
    from av import VideoFrame as Frame

    plain = frame.rotation == 0 and media.pixel_aspect == 1
    if plain and not (even and (frame.width % 2 or frame.height % 2)):
        return frame.reformat(format="yuv420p") if even else frame
    image = upright_image(frame, media.pixel_aspect, None)
    if even:
        image = np.ascontiguousarray(image[: max(len(image) // 2 * 2, 1), : max(image.shape[1] // 2 * 2, 1)])
    return Frame.from_ndarray(image, format="rgb24").reformat(format="yuv420p" if even else "rgb24")


def _picture(container: Any, media: Media, shown: VideoFrame) -> Any:
    import av

    codec = next(name for name in _ENCODERS if name in av.codecs_available)
    rate = media.container.streams[media.video or 0].average_rate or Fraction(25)
    stream = container.add_stream(codec, rate=rate, options=_QUALITY if codec == "libx264" else {})
    stream.width, stream.height, stream.pix_fmt = shown.width, shown.height, "yuv420p"
    stream.codec_context.time_base = _CLOCK
    return stream


def _sound(container: Any, media: Media) -> Any:
    """Return a track for sound; None where there is none that can be used."""
    context: Any = None if media.audio is None else media.container.streams[media.audio].codec_context
    if context is None or not context.sample_rate:
        return None
    stream = container.add_stream("aac", rate=context.sample_rate)
    stream.layout = "mono" if context.layout.nb_channels == 1 else "stereo"
    return stream


def _encode_sound(container: Any, stream: Any, frame: AudioFrame, begins: float, ends: float) -> None:
    """Encode what of a frame lies between 0 and ``ends`` seconds of the clip."""
    from av import AudioFrame as Frame
    from av import AudioResampler

    rate, layout = stream.rate, stream.layout.name
    frame.pts = None
    first = round(begins * rate)
    for plain in AudioResampler(format="fltp", layout=layout, rate=rate).resample(frame):
        samples: Any = plain.to_ndarray()[:, max(-first, 0) : max(round(ends * rate) - first, 0)]
        if samples.shape[1]:
            piece = Frame.from_ndarray(np.ascontiguousarray(samples), format="fltp", layout=layout)
            piece.sample_rate, piece.pts, piece.time_base = rate, max(first, 0), Fraction(1, rate)
            container.mux(stream.encode(piece))
        first += plain.samples


def _palette(frame: VideoFrame, rate: float) -> Any:
    """Return the filters that make frames evenly spaced, and of the best 256 colours."""
    from av.filter import Graph

    graph = Graph()
    source = graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=_CLOCK)
    spaced = graph.add("fps", f"{rate:g}")
    split, made, used = graph.add("split"), graph.add("palettegen"), graph.add("paletteuse")
    sink = graph.add("buffersink")
    source.link_to(spaced)
    spaced.link_to(split)
    split.link_to(used, 0, 0)
    split.link_to(made, 1, 0)
    made.link_to(used, 0, 1)
    used.link_to(sink)
    graph.configure()
    return graph


def _pulled(graph: Any) -> Iterator[Any]:
    from av import BlockingIOError as Waiting
    from av import EOFError as Ended

    while True:
        try:
            yield graph.pull()
        except (Waiting, Ended):
            return

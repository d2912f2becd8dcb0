"""Video and audio files: what is in them, their sound and their frames, piece by piece and with exact times.

All times are seconds from the start of the file (where a player shows 0:00), whatever the file's own clock says.
"""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import FormatError, Graph2VidError, InputError, needing

if TYPE_CHECKING:
    from av import AudioFrame, Packet, VideoFrame
    from av.audio.resampler import AudioResampler
    from av.container import InputContainer

Sound: TypeAlias = NDArray[np.float32]
"""Samples in -1 … 1."""

SAMPLE_RATE = 16_000
"""Samples per second that speech recognition wants."""

_CHUNK_SECONDS = 10.0
_GAP_SECONDS = 0.05
"""Sound whose times jump by more than this is put where its times say; less is the rounding of the container."""
_VARIES = 0.25
"""Frame intervals that differ by more than this share of the usual one make the rate variable."""
_INSTANT = 1e-6
"""Seconds within which two times are the same, whatever they were rounded to."""
_ENDS_EARLY = 1.0
"""Seconds that the data may end before the declared end without the file being called broken."""
_SEEK_EARLY = 1_000_000
"""Microseconds before the wanted time that are sought: frames are stored in another order than they are shown in."""
_MOST_THREADS = 4
"""Each decoding thread holds frames of its own: on a machine with many cores they would fill the memory."""

# Formats in which FFmpeg reads texts and single pictures as if they were films, and those that lead to other files.
_NOT_FILMS = {"tty", "image2", "bin", "xbin", "adf", "idf", "txd", "ico", "concat", "hls", "dash", "imf", "sdp"}


@dataclass(frozen=True)
class MediaInfo:
    """What is in a video or audio file.

    Attributes
    ----------
    duration : float
        Seconds of sound or picture that are there, whichever is longer.
    start : float
        The time of the file's own clock at its start, in seconds; it is taken off all other times.
    has_audio, has_video : bool
        Whether there is sound or a moving picture that can be decoded.
    width, height : int
        Of a frame in pixels, turned upright; 0 without a picture.
    rotation : int
        By how many degrees the stored frames are turned counterclockwise to be upright: 0, 90, 180 or 270.
    frame_rate : float
        Frames per second on average; 0 without a picture.
    variable_rate : bool
        Whether the frames are not evenly spaced.
    broken : str
        What is wrong with the file, in words; empty if nothing was noticed. What is there can be used.
    """

    duration: float
    start: float
    has_audio: bool
    has_video: bool
    width: int
    height: int
    rotation: int
    frame_rate: float
    variable_rate: bool
    broken: str


def probe(path: str | os.PathLike[str]) -> MediaInfo:
    """Say what is in a video or audio file. All of the file is read, and its first frame decoded.

    Raises
    ------
    FormatError
        The file is neither a video nor an audio file, or there is nothing in it.
    Graph2VidError
        The file cannot be read.
    """
    path = Path(path)
    with opened(path) as media:
        sound, picture = _Extent(), _Extent()
        for packet in media.packets(media.audio, media.video):
            extent = sound if packet.stream.index == media.audio else picture
            extent.add(packet, media.start)
        declared = None if media.container.duration is None else media.container.duration / 1_000_000
        trouble = media.trouble
    has_audio = bool(sound.times) and _first_frame(path, video=False) is not None
    first = _first_frame(path, video=True) if picture.times else None
    if sound.times and not has_audio:
        trouble = trouble or "its sound cannot be decoded"
    if picture.times and first is None:
        trouble = trouble or "its picture cannot be decoded"
    duration = max(sound.end if has_audio else 0.0, picture.end if first else 0.0)
    if not duration > 0:
        raise FormatError(f"{path} holds neither sound nor moving picture: 0 s can be decoded")
    if not trouble and declared is not None:
        # Some formats count from the start of the file, others from the zero of its clock.
        declared -= max(float(media.start), 0.0)
        if declared - max(sound.end, picture.end) > _ENDS_EARLY:
            trouble = f"it should last {declared:.1f} s, but its data end at {duration:.1f} s"
    rate, varies = picture.rate() if first else (0.0, False)
    rotation = _rotation(first) if first else 0
    width, height = _shown_size(first, media.pixel_aspect) if first else (0, 0)
    if rotation % 180:
        width, height = height, width
    return MediaInfo(
        duration=duration,
        start=float(media.start),
        has_audio=has_audio,
        has_video=first is not None,
        width=width,
        height=height,
        rotation=rotation,
        frame_rate=rate,
        variable_rate=varies,
        broken=trouble,
    )


def audio(path: str | os.PathLike[str], rate: int = SAMPLE_RATE) -> Iterator[Sound]:
    """Read the sound of a video or audio file, its channels mixed into one.

    Parameters
    ----------
    rate : int
        Samples per second.

    Yields
    ------
    float32 [samples]
        At most ten seconds in -1 … 1. Sample i of all, counted from the first chunk, is heard at i / rate seconds:
        where the sound begins late or is interrupted, there is silence. What cannot be decoded is left out, and
        a warning says where.

    Raises
    ------
    InputError
        There is no sound.
    """
    path = Path(path)
    if rate < 1:
        raise InputError(f"the rate must be a positive number of samples per second, not {rate!r}")
    with opened(path) as media:
        if media.audio is None:
            raise InputError(f"{path} has no sound")
        yield from in_chunks(_samples(media, rate), round(_CHUNK_SECONDS * rate))
        media.warn("sound")


def frames(
    path: str | os.PathLike[str],
    *,
    rate: float,
    size: int | None = None,
    start: float = 0.0,
    stop: float = math.inf,
) -> Iterator[tuple[float, NDArray[np.uint8]]]:
    """Read the picture of a video at evenly spaced times.

    Parameters
    ----------
    rate : float
        Frames per second that are wanted.
    size : int, optional
        The length in pixels to which the shorter side is brought, the other in proportion; by default frames
        have the size they are shown at.
    start, stop : float
        Seconds: only times from ``start`` on and before ``stop``. What lies before ``start`` is decoded from the key
        frame before it on, where the file can be sought in.

    Yields
    ------
    seconds : float
        0, 1 / rate, 2 / rate, …, less the times before the first frame.
    image : uint8 [H, W, 3]
        What is on the screen at that time, upright, red, green and blue: the last frame that began by then. What
        cannot be decoded is left out, and a warning says where.

    Raises
    ------
    InputError
        There is no picture.
    """
    path = Path(path)
    if not 0 < rate < math.inf:
        raise InputError(f"the rate must be a positive number of frames per second, not {rate!r}")
    if size is not None and size < 1:
        raise InputError(f"the size must be a positive number of pixels, not {size!r}")
    with opened(path) as media:
        if media.video is None:
            raise InputError(f"{path} has no moving picture")
        tick = math.ceil((start - _INSTANT) * rate)
        for frame, begins, ends in _on_screen(media, start):
            tick = max(tick, math.ceil((begins - _INSTANT) * rate))
            image: NDArray[np.uint8] | None = None
            while tick / rate < min(ends, stop) - _INSTANT:
                image = upright_image(frame, media.pixel_aspect, size) if image is None else image
                yield tick / rate, image
                tick += 1
            if ends >= stop:
                return
        media.warn("picture")


# -- open files ----------------------------------------------------------------------------------------------


@dataclass
class Media:
    """An open file: the streams that are used, its start, and what went wrong while reading it.

    Attributes
    ----------
    audio, video : int or None
        Indices of the streams.
    pixel_aspect : Fraction
        Width over height of a pixel as it is shown.
    start : Fraction
        Where the file's clock stands at its start, in seconds.
    trouble : str
        What went wrong first.
    """

    path: Path
    container: InputContainer
    audio: int | None
    video: int | None
    pixel_aspect: Fraction
    start: Fraction
    trouble: str = ""

    def packets(self, *streams: int | None) -> Iterator[Packet[Any]]:
        """Yield the packets of some streams; a file that breaks off ends there."""
        from av import FFmpegError

        chosen = [self.container.streams[index] for index in streams if index is not None]
        last = 0.0
        while True:
            try:
                for packet in self.container.demux(chosen):
                    if packet.pts is not None:
                        last = float(packet.pts * packet.time_base - self.start)
                    yield packet
                return
            except IndexError:  # a stream that was not there at the start: not one of ours, so read on
                continue
            except FFmpegError as error:
                return self.note(f"it breaks off after {last:.1f} s ({error.strerror})")

    def decoded(self, stream: int, from_seconds: float = 0.0) -> Iterator[Any]:
        """Yield the frames of a stream in order of time, from a key frame before a time on where there is one.

        What cannot be decoded is left out.
        """
        from av import FFmpegError

        last = 0.0
        if from_seconds > 0:
            at = round((Fraction(from_seconds) + self.start) * 1_000_000)
            with contextlib.suppress(FFmpegError):  # a file that cannot be sought in is read from its start
                self.container.seek(max(at - _SEEK_EARLY, 0))
        for packet in self.packets(stream):
            try:
                for frame in packet.decode():
                    if frame.pts is not None:
                        last = self.seconds(frame)
                        yield frame
            except EOFError:  # the mark at the end of the file, once more
                continue
            except FFmpegError as error:
                self.note(f"it cannot be decoded after {last:.1f} s ({error.strerror})")

    def seconds(self, frame: AudioFrame | VideoFrame) -> float:
        """Return when a frame begins."""
        if frame.pts is None or frame.time_base is None:
            return 0.0
        return float(frame.pts * frame.time_base - self.start)

    def note(self, trouble: str) -> None:
        self.trouble = self.trouble or trouble

    def warn(self, what: str) -> None:
        """Warn about what went wrong, if anything did."""
        if self.trouble:
            warnings.warn(f"the {what} of {self.path} is used as far as it goes: {self.trouble}", stacklevel=3)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Media]:
    with needing("reading videos needs the package av", "media"):
        import av
        from av.stream import Disposition

    lenient = int(av.__version__.split(".")[0]) < 19  # metadata that are not UTF-8 are passed over; av 19 always does
    try:
        with path.open("rb"):  # a plain file: its name is no address, and no list of addresses is followed
            pass
        arguments: dict[str, Any] = {"metadata_errors": "replace"} if lenient else {}
        container = av.open(str(path.absolute()), options={"protocol_whitelist": "file"}, **arguments)
    except av.FFmpegError as error:
        raise FormatError(f"{path} is not a video or audio file that can be read: {error.strerror}") from None
    except OSError as error:
        raise Graph2VidError(f"cannot read {path}: {error.strerror or error}") from error
    with container:
        names = set(container.format.name.split(","))
        if names & _NOT_FILMS or any(name.endswith("_pipe") for name in names):
            raise FormatError(f"{path} is not a video or audio file: it looks like a text, a picture or a list")
        audio_streams = [stream for stream in container.streams.audio if stream.codec_context is not None]
        video_streams = [
            stream
            for stream in container.streams.video
            if stream.codec_context is not None and not stream.disposition & Disposition.attached_pic
        ]
        if not audio_streams and not video_streams:
            raise FormatError(f"{path} is not a video or audio file: there is neither sound nor moving picture in it")
        for stream in video_streams:
            stream.thread_type = "AUTO"
            stream.codec_context.thread_count = min(os.cpu_count() or 1, _MOST_THREADS)
        start = container.start_time
        yield Media(
            path=path,
            container=container,
            audio=audio_streams[0].index if audio_streams else None,
            video=video_streams[0].index if video_streams else None,
            pixel_aspect=(video_streams[0].sample_aspect_ratio if video_streams else None) or Fraction(1),
            start=Fraction(0 if start is None else start, 1_000_000),
        )


# -- extent --------------------------------------------------------------------------------------------------


@dataclass
class _Extent:
    """When the packets of one stream begin, and where the last of them ends, in seconds."""

    times: list[float] = field(default_factory=list)
    end: float = 0.0

    def add(self, packet: Packet[Any], start: Fraction) -> None:
        stamp = packet.pts if packet.pts is not None else packet.dts
        if stamp is None or packet.size == 0:  # the mark at the end of the file
            return
        begins = float(stamp * packet.time_base - start)
        lasts = float(packet.duration * packet.time_base) if packet.duration else 0.0
        if not lasts and self.times:
            lasts = abs(begins - self.times[-1])
        self.times.append(begins)
        self.end = max(self.end, begins + lasts)

    def rate(self) -> tuple[float, bool]:
        """Return the frames per second on average, and whether they vary."""
        times = np.unique(self.times)
        if len(times) < 2:
            return (1.0 / (self.end - times[0]) if len(times) and self.end > times[0] else 0.0), False
        intervals = np.diff(times)
        varies = float(np.ptp(intervals)) > _VARIES * float(np.median(intervals))
        return float((len(times) - 1) / (times[-1] - times[0])), varies


def _first_frame(path: Path, *, video: bool) -> Any:
    with opened(path) as media:
        stream = media.video if video else media.audio
        return None if stream is None else next(media.decoded(stream), None)


# -- sound ---------------------------------------------------------------------------------------------------


def _samples(media: Media, rate: int) -> Iterator[Sound]:
    """Yield the samples of the sound from second 0 on, in pieces of any length."""
    from av import AudioResampler, FFmpegError

    assert media.audio is not None
    resampler: AudioResampler | None = None
    shape: Any = None
    heard = 0.0  # seconds of sound so far, silence put in between included
    for frame in media.decoded(media.audio):
        gap = media.seconds(frame) - heard
        lasts = frame.samples / max(frame.sample_rate, 1)
        if gap < -_GAP_SECONDS and gap + lasts <= 0:  # heard already
            continue
        now = (frame.format.name, frame.layout.name, frame.sample_rate)
        if gap > _GAP_SECONDS or now != shape:
            if resampler is not None:
                yield from _arrays(resampler.resample(None))
            resampler, shape = AudioResampler(format="flt", layout="mono", rate=rate), now
        if gap > _GAP_SECONDS:
            yield from _silence(round((heard + gap) * rate) - round(heard * rate), rate)
            heard += gap
        frame.pts = None  # what the times say was done above
        try:
            pieces = resampler.resample(frame) if resampler is not None else []
        except FFmpegError as error:
            media.note(f"it cannot be used after {heard:.1f} s ({error.strerror})")
            resampler = shape = None
            continue
        yield from _arrays(pieces)
        heard += lasts
    if resampler is not None:
        yield from _arrays(resampler.resample(None))


def _arrays(pieces: list[AudioFrame]) -> Iterator[Sound]:
    for piece in pieces:
        yield piece.to_ndarray().reshape(-1).astype(np.float32, copy=False)


def _silence(samples: int, rate: int) -> Iterator[Sound]:
    for first in range(0, samples, rate):
        yield np.zeros(min(rate, samples - first), dtype=np.float32)


def in_chunks(pieces: Iterator[Sound], length: int, cut: Callable[[Sound], int] = len) -> Iterator[Sound]:
    """Join pieces to chunks of ``length`` samples, or as many of these as ``cut`` says; the last may be shorter."""
    waiting: list[Sound] = []
    count = 0
    for piece in pieces:
        waiting.append(piece)
        count += len(piece)
        while count >= length:
            joined = np.concatenate(waiting)
            end = cut(joined[:length])
            yield joined[:end].copy()
            waiting, count = [joined[end:]], count - end
    if count:
        yield np.concatenate(waiting)


# -- picture -------------------------------------------------------------------------------------------------


def _on_screen(media: Media, start: float = 0.0) -> Iterator[tuple[VideoFrame, float, float]]:
    """Yield each frame with the seconds at which it appears and is replaced, from one shown at ``start`` on."""
    assert media.video is not None
    shown: VideoFrame | None = None
    begins = interval = 0.0
    for frame in media.decoded(media.video, from_seconds=start):
        follows = media.seconds(frame)
        if shown is not None:
            yield shown, begins, follows
            interval = follows - begins
        shown, begins = frame, follows
    if shown is not None:
        lasts = float(shown.duration * shown.time_base) if shown.duration and shown.time_base else interval
        yield shown, begins, begins + max(lasts, 2 * _INSTANT)


def _rotation(frame: VideoFrame) -> int:
    """Return by how many degrees the frame is to be turned counterclockwise, in quarters of a turn."""
    return round(frame.rotation / 90) * 90 % 360


def _shown_size(frame: VideoFrame, pixel_aspect: Fraction, size: int | None = None) -> tuple[int, int]:
    """Return width and height of a frame with square pixels, before it is turned."""
    width, height = float(frame.width * pixel_aspect), float(frame.height)
    scale = 1.0 if size is None else size / min(width, height)
    return max(round(width * scale), 1), max(round(height * scale), 1)


def upright_image(frame: VideoFrame, pixel_aspect: Fraction, size: int | None) -> NDArray[np.uint8]:
    width, height = _shown_size(frame, pixel_aspect, size)
    image = frame.reformat(width=width, height=height, format="rgb24").to_ndarray()
    turned: NDArray[np.uint8] = np.ascontiguousarray(np.rot90(image, _rotation(frame) // 90))
    return turned

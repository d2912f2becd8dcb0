"""Open video and audio files: their streams, packets and decoded frames, and what went wrong on the way."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph2vid.errors import FormatError, Graph2VidError, MissingDependencyError

if TYPE_CHECKING:
    from av import AudioFrame, Packet, VideoFrame
    from av.container import InputContainer

_MOST_THREADS = 4
"""Each decoding thread holds frames of its own: on a machine with many cores they would fill the memory."""

# Formats in which FFmpeg reads texts and single pictures as if they were films, and those that lead to other files.
_NOT_FILMS = {"tty", "image2", "bin", "xbin", "adf", "idf", "txd", "ico", "concat", "hls", "dash", "imf", "sdp"}


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
        more = True
        while more:
            try:
                for packet in self.container.demux(chosen):
                    if packet.pts is not None:
                        last = float(packet.pts * packet.time_base - self.start)
                    yield packet
                more = False
            except IndexError:  # a stream that was not there at the start: not one of ours, so read on
                continue
            except FFmpegError as error:
                self.note(f"it breaks off after {last:.1f} s ({error.strerror})")
                more = False

    def decoded(self, stream: int) -> Iterator[Any]:
        """Yield the frames of a stream in order of time; what cannot be decoded is left out."""
        from av import FFmpegError

        last = 0.0
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


def _lenient(av: Any) -> dict[str, Any]:
    """Return the arguments of ``av.open`` that let it pass over metadata which are not UTF-8: av 19 always does."""
    return {} if int(av.__version__.split(".")[0]) >= 19 else {"metadata_errors": "replace"}


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Media]:
    try:
        import av
        from av.stream import Disposition
    except ImportError:
        raise MissingDependencyError("reading videos needs the package av", extra="media") from None

    try:
        with path.open("rb"):  # a plain file: its name is no address, and no list of addresses is followed
            pass
        container = av.open(str(path.absolute()), options={"protocol_whitelist": "file"}, **_lenient(av))
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

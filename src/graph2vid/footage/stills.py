"""Single pictures of a video: the sharpest frame around a moment, and a sheet of many."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graph2vid.errors import InputError
from graph2vid.evidence.media import opened, upright_image
from graph2vid.flow.svg import Picture, escaped, wrapped
from graph2vid.footage.encoding import decoded

Image: TypeAlias = NDArray[np.uint8]
"""[H, W, 3], red, green and blue."""

_WIDTH, _GAP, _TEXT, _LINE = 320, 20, 15.0, 20
_MOST_ACROSS = 4


class Still(NamedTuple):
    """A picture of a contact sheet (JPEG, and its width over its height), with what is written under it."""

    jpeg: bytes
    aspect: float
    title: str
    note: str

    @classmethod
    def of(cls, image: Image, title: str, note: str) -> Still:
        """Return a picture that is kept as small as the sheet shows it."""
        return cls(to_jpeg(image, width=2 * _WIDTH), image.shape[1] / image.shape[0], title, note)


def sharpest_frame(source: str | os.PathLike[str], start: float, end: float, *, most: int = 60) -> tuple[float, Image]:
    """Return the sharpest frame that begins between two times, and when it does.

    Sharp is what differs most from its neighbours: the variance of the Laplacian of the brightness.

    Parameters
    ----------
    source : path
    start, end : float
        Seconds; where no frame begins between them, the first after ``start`` is taken, or the last of the video.
    most : int
        Frames that are looked at, evenly spaced.

    Returns
    -------
    seconds : float
    image : uint8 [H, W, 3]
        Upright, red, green and blue.
    """
    with opened(Path(source)) as media:
        if media.video is None:
            raise InputError(f"{source} has no moving picture")
        stream = media.container.streams.video[0]
        between = float(stream.average_rate or Fraction(25)) * max(end - start, 0.0)
        step = max(round(between / most), 1)
        best: tuple[float, float, Image] | None = None
        for at, frame in enumerate(decoded(media, start, end, sound=False)):
            if at % step == 0:
                image = upright_image(frame, media.pixel_aspect, None)
                if best is None or (value := sharpness(image)) > best[0]:
                    best = (sharpness(image) if best is None else value), media.seconds(frame), image
    if best is None:
        raise InputError(f"{source} has no picture between {start:g} and {end:g} s")
    return best[1], best[2]


def sharpness(image: Image) -> float:
    """Return the variance of the Laplacian of the brightness."""
    grey = image.astype(np.float32) @ np.array([0.299, 0.587, 0.114], dtype=np.float32)
    if min(grey.shape) < 3:
        return 0.0
    inner = grey[1:-1, 1:-1]
    laplacian = grey[:-2, 1:-1] + grey[2:, 1:-1] + grey[1:-1, :-2] + grey[1:-1, 2:] - 4 * inner
    return float(laplacian.var())


def to_jpeg(image: Image, *, width: int | None = None) -> bytes:
    """Return an image as JPEG, at most ``width`` pixels wide."""
    from av import CodecContext, VideoFrame

    frame = VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
    across = min(frame.width, width or frame.width)
    frame = frame.reformat(width=across, height=max(round(frame.height * across / frame.width), 1), format="yuvj420p")
    codec = CodecContext.create("mjpeg", "w")
    codec.width, codec.height, codec.pix_fmt = frame.width, frame.height, "yuvj420p"
    codec.time_base = Fraction(1, 25)
    codec.options = {"qmin": "2", "qmax": "2"}
    frame.pts = 0
    return b"".join(bytes(packet) for packet in [*codec.encode(frame), *codec.encode(None)])


def contact_sheet(stills: Sequence[Still], title: str = "") -> Picture:
    """Draw pictures in rows, with their titles and notes under them (SVG; its ``to_png`` makes PNG of it)."""
    across = min(max(len(stills), 1), _MOST_ACROSS)
    tall = max((round(_WIDTH / one.aspect) for one in stills), default=0)
    names = [wrapped(one.title, _TEXT, _WIDTH, 2) for one in stills]
    head = 56 if title else _GAP
    row = tall + 3 * _LINE + 2 * _GAP
    width = _GAP + across * (_WIDTH + _GAP)
    height = head + row * -(-len(stills) // across)
    parts = [f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
    if title:
        parts.append(f'<text x="{_GAP}" y="36" font-size="20" font-weight="600">{escaped(title)}</text>')
    for at, (still, lines) in enumerate(zip(stills, names, strict=True)):
        x, y = _GAP + at % across * (_WIDTH + _GAP), head + at // across * row
        data = base64.b64encode(still.jpeg).decode()
        parts.append(
            f'<image x="{x}" y="{y}" width="{_WIDTH}" height="{tall}" preserveAspectRatio="xMidYMid meet" '
            f'href="data:image/jpeg;base64,{data}"/>'
        )
        for number, line in enumerate([*lines, still.note]):
            colour = "#64748b" if number == len(lines) else "#0f172a"
            base = y + tall + _LINE * (number + 1)
            parts.append(f'<text x="{x}" y="{base}" font-size="{_TEXT:g}" fill="{colour}">{escaped(line)}</text>')
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="Inter, Segoe UI, Roboto, Helvetica Neue, Arial, DejaVu Sans, sans-serif" fill="#0f172a">'
    )
    return Picture("\n".join([opening, *parts, "</svg>\n"]), width, height)

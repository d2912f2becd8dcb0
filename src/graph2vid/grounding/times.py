"""Times as people write them, and which clips a span of seconds holds."""

from __future__ import annotations

import math
import re

import numpy as np

from graph2vid._values import read_number, shown
from graph2vid.errors import InputError

_TIME = re.compile(r"(?:(?:(\d+):)?(\d+):)?(\d+(?:\.\d*)?|\.\d+)", re.ASCII)


def format_time(seconds: float) -> str:
    """Write seconds as ``m:ss.s``, or ``h:mm:ss.s`` from one hour on."""
    tenths = round(abs(seconds) * 10)
    sign = "-" if seconds < 0 and tenths else ""
    minutes, tenths = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    rest = f"{tenths // 10:02d}.{tenths % 10}"
    return f"{sign}{hours}:{minutes:02d}:{rest}" if hours else f"{sign}{minutes}:{rest}"


def parse_time(text: str) -> float:
    """Read ``75``, ``75.5``, ``1:15.5`` or ``0:01:15.5`` as seconds."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise InputError(f"{shown(text)} is not a time; write seconds (75.5) or m:ss (1:15.5)")
    hours, minutes, seconds = found.groups(default="0")
    parts = ((hours, 3600.0), (minutes, 60.0), (seconds, 1.0))
    return sum(scale * read_number(part, "a time") for part, scale in parts)


def parse_span(text: str) -> tuple[float, float]:
    """Read ``START-END``; a missing end is open: ``40-`` is from 40 s on, ``-10`` is up to 10 s."""
    start, dash, end = text.replace("–", "-").partition("-")
    if not dash or not (start.strip() or end.strip()):
        raise InputError(f"{text!r} is not a span of time; write START-END, for example 40-60 or 0:40-1:00")
    first = parse_time(start) if start.strip() else -math.inf
    last = parse_time(end) if end.strip() else math.inf
    if not first < last:
        raise InputError(f"the span {text!r} ends before it begins, or is empty")
    return first, last


def clips_in_span(start: float, end: float, n_clips: int, clip_seconds: float, offset: float) -> tuple[int, int]:
    """Return the half-open range of clips whose middle lies in ``start`` ≤ t < ``end`` (seconds)."""
    middles = offset + (np.arange(n_clips) + 0.5) * clip_seconds
    first, stop = np.searchsorted(middles, [start, end])
    return int(first), int(stop)

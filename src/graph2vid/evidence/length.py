"""How long a video may be, and how many clips it is cut into: checked before anything of that size is made."""

from __future__ import annotations

import math

from graph2vid.errors import InputError, TooLargeError

MOST_HOURS = 24.0
"""Of a video, unless told otherwise."""
MOST_CLIPS = 1_000_000
"""Of a video: a day in clips of a tenth of a second."""


def check_length(duration: float, max_hours: float = MOST_HOURS) -> None:
    """Refuse a video of more than ``max_hours`` (TooLargeError); ``duration`` is in seconds."""
    if not 0 < max_hours < math.inf:
        raise InputError(f"the longest video must be a positive number of hours, not {max_hours!r}")
    if duration > 3600.0 * max_hours:
        raise TooLargeError(
            f"the video, or the last of its captions, ends after {duration / 3600:,.4g} hours, and at most "
            f"{max_hours:g} are taken (--max-hours): is a time wrong?"
        )


def clips_of(duration: float, clip_seconds: float, max_hours: float = MOST_HOURS) -> int:
    """Return how many clips cover a video.

    Parameters
    ----------
    duration, clip_seconds : float
        Seconds.
    max_hours : float
        The longest video that is taken for one.

    Raises
    ------
    TooLargeError
        The video lasts longer, or would have more than a million clips.
    """
    check_length(duration, max_hours)
    if duration / clip_seconds > MOST_CLIPS:
        raise TooLargeError(
            f"clips of {clip_seconds:g} s make {duration / clip_seconds:,.4g} of a video of {duration:,.4g} s, and at "
            f"most {MOST_CLIPS:,} are taken: use longer clips (--clip-seconds)"
        )
    return math.ceil(duration / clip_seconds)

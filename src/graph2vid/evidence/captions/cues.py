"""Cues: the words of a transcript, with their times."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """One word: ``text`` is said from ``start`` to ``end`` (seconds).

    ``probability`` is how sure the recogniser was of it, in 0 … 1; None if it did not say.
    """

    start: float
    end: float
    text: str
    probability: float | None = None


@dataclass(frozen=True)
class Cue:
    """One caption: ``text`` is said, or on screen, from ``start`` to ``end`` (seconds).

    ``words`` are its words as far as their times are known, in order of time.
    """

    start: float
    end: float
    text: str
    words: tuple[Word, ...] = ()

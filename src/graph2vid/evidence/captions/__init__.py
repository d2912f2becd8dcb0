"""Captions: transcripts with times, read from WebVTT, SubRip and the JSON of Whisper and its kin."""

from __future__ import annotations

from graph2vid.evidence.captions.caption_files import SUFFIXES, TRANSCRIPT_SUFFIXES, read_captions
from graph2vid.evidence.captions.cues import Cue, Word
from graph2vid.evidence.captions.texts import parse_captions
from graph2vid.evidence.captions.whisper import parse_transcript

__all__ = [
    "SUFFIXES",
    "TRANSCRIPT_SUFFIXES",
    "Cue",
    "Word",
    "parse_captions",
    "parse_transcript",
    "read_captions",
]

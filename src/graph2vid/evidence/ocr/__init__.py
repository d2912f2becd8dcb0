"""On-screen text: frames are read where the text in the picture changes, and what is read becomes cues."""

from __future__ import annotations

from graph2vid.evidence.ocr.screen_cues import CAPTION, INGREDIENTS, TITLE, WATERMARK, screen_cues
from graph2vid.evidence.ocr.screen_evidence import CALIBRATION as SCREEN_CALIBRATION
from graph2vid.evidence.ocr.screen_evidence import ScreenEvidence, screen_evidence
from graph2vid.evidence.ocr.screen_reading import Reading, read_screen
from graph2vid.evidence.ocr.text_reader import Line, is_installed, read_lines

__all__ = ["CAPTION", "INGREDIENTS", "SCREEN_CALIBRATION", "TITLE", "WATERMARK", "Line", "Reading", "ScreenEvidence"]
__all__ += ["is_installed", "read_lines", "read_screen", "screen_cues", "screen_evidence"]

"""Training the learned parser (torch)."""

from __future__ import annotations

from graph2vid.learn.parser.cross_validation import cross_validate_parser
from graph2vid.learn.parser.training import ParserTrainingOptions, train_parser

__all__ = ["ParserTrainingOptions", "cross_validate_parser", "train_parser"]

"""Training the learned parser (torch)."""

from __future__ import annotations

from graph2vid.learn.parser.training import ParserTrainingOptions, train_parser

__all__ = ["ParserTrainingOptions", "train_parser"]

"""The dependency parser, or a reason to skip."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from graph2vid.errors import MissingDependencyError
from graph2vid.text import Instruction, Parse, Procedure
from graph2vid.text.rules import parse_by_rules
from graph2vid.text.rules.dependency_parser import language_model


@pytest.fixture(scope="session", autouse=True)
def needs_model() -> None:
    try:
        language_model()
    except MissingDependencyError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def parse() -> Callable[[str | Iterable[str]], Parse]:
    """Parse instructions: sentences of one text (split at full stops), or several texts."""

    def run(texts: str | Iterable[str]) -> Parse:
        if isinstance(texts, str):
            texts = [f"{text.strip()}." for text in texts.split(".") if text.strip()]
        return parse_by_rules(Procedure(tuple(Instruction(text) for text in texts)))

    return run

"""Options are declared once, and everything else derives from them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import FrozenInstanceError, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph2vid._options import (
    AlignOptions,
    CostOptions,
    EvidenceOptions,
    Options,
    ProcedureOptions,
    deal,
    declared,
    option,
)
from graph2vid.errors import InputError

CLASSES = (ProcedureOptions, EvidenceOptions, CostOptions, AlignOptions)
ALL = [one for cls in CLASSES for one in declared(cls)]


@dataclass(frozen=True)
class Toy(Options, panel="Toys"):
    size: float = option(1.0, "How large.", above=0.0, most=10.0)
    count: int = option(2, "How many.", least=1, was="number")
    loud: bool = option(True, "Make noise.", off="Make no noise.")
    colour: str | None = option(None, "Which colour.", choices=lambda: ("red", "blue"))
    where: Path | None = option(None, "Where it lies.")
    names: tuple[str, ...] = option((), "What it is called.")
    policy: Any = option(None, "How it works.")


def test_every_option_has_help_and_a_flag_of_its_own() -> None:
    assert all(one.about.help.endswith((".", "…")) for one in ALL)
    assert [name for name, times in Counter(one.flag for one in ALL).items() if times > 1] == []
    assert all(cls.panel != Options.panel for cls in CLASSES)


@pytest.mark.parametrize("cls", CLASSES)
def test_defaults_are_values_of_their_types(cls: type[Options]) -> None:
    assert cls.from_mapping(cls().to_json()) == cls()
    assert cls.from_mapping({one.name: str(one.default) for one in declared(cls) if one.default is not None}) == cls()


VALUES = {
    "size": st.floats(0.001, 10.0),
    "count": st.integers(1, 1000),
    "loud": st.booleans(),
    "colour": st.sampled_from(["red", "blue"]),
    "names": st.lists(st.text(), max_size=3).map(tuple),
}


@given(st.fixed_dictionaries({}, optional=VALUES))
def test_values_come_back_from_json_and_text(values: dict[str, Any]) -> None:
    toy = Toy(**values)
    assert Toy.from_mapping(toy.to_json()) == toy
    assert Toy.from_mapping({name: value if name == "names" else str(value) for name, value in values.items()}) == toy


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": 0}, "size must be a number above 0 and at most 10, not 0"),
        ({"size": math.nan}, "size must be a number"),
        ({"size": True}, "size must be a number"),
        ({"size": "large"}, "size must be a number above 0 and at most 10, not 'large'"),
        ({"count": 1.5}, "count must be a whole number of at least 1, not 1.5"),
        ({"count": None, "loud": "perhaps"}, "loud must be true or false, not 'perhaps'"),
        ({"colour": "green"}, "colour must be one of blue, red, not 'green'"),
        ({"where": 3}, "where must be a path, not 3"),
        ({"names": 3}, "names must be text, not 3"),
        ({"colours": "red"}, "unknown option 'colours'; did you mean 'colour'"),
        ({"x": 1}, "unknown option 'x'; known: colour, count, "),
    ],
)
def test_what_is_wrong_is_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Toy.from_mapping(values)
    with pytest.raises(InputError, match=f"row 3: {message}"):
        Toy.from_mapping(values, source="row 3")


def test_objects_are_checked_when_they_are_made_and_stay_as_they_are() -> None:
    toy = Toy(size=np.float32(2), count=np.int64(3), loud=np.bool_(False), where="a/b", names=["x"])  # type: ignore[arg-type]
    assert toy == Toy(2.0, 3, False, where=Path("a/b"), names=("x",)) and type(toy.size) is float
    with pytest.raises(InputError, match="size must be"):
        Toy(size="2")  # type: ignore[arg-type]
    with pytest.raises(FrozenInstanceError):
        toy.size = 3.0  # type: ignore[misc]


def test_values_that_json_does_not_know_are_said_to_be_given() -> None:
    assert Toy(policy=np.zeros(3)).to_json()["policy"] == "given"
    assert Toy(policy=("vector", np.zeros(3))).to_json()["policy"] == "vector"
    assert Toy(where=Path("a")).to_json()["where"] == "a"


def test_keyword_arguments_are_dealt_to_their_classes() -> None:
    costs, alignment = deal({"drop": 1.5, "gamma": 2.0}, CostOptions, AlignOptions)
    assert (costs, alignment) == (CostOptions(drop=1.5), AlignOptions(gamma=2.0))
    with pytest.raises(InputError, match="unknown option 'gama'; did you mean 'gamma'"):
        deal({"gama": 2.0}, CostOptions, AlignOptions)


def test_old_names_work_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="'number' is called 'count' now"):
        assert Toy.from_mapping({"number": 5}).count == 5
    with pytest.warns(DeprecationWarning, match="'breaking' is called 'violation' now"):
        assert deal({"breaking": 2.0}, AlignOptions)[0].violation == 2.0

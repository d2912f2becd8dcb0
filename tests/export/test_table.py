"""The table of formats: filled when it is first read, and open to other packages."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint, entry_points

import pytest

from found import make_grounding
from graph2vid import registry
from graph2vid.export import FORMATS, Exported, Film, Format
from graph2vid.grounding import Grounding


def test_groundings_know_the_formats_without_importing_them_first() -> None:
    code = """
import sys
from graph2vid.grounding.exporting import FORMATS
assert "vtt" in FORMATS and "graph2vid.export" not in sys.modules
assert FORMATS.get("vtt").suffix and "graph2vid.export" in sys.modules
assert not {"matplotlib", "pympi", "av"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_format_is_offered_by_name() -> None:
    offered = {point.name for point in entry_points(group=FORMATS.group)}
    assert set(FORMATS._parts) == offered


def _shout(grounding: Grounding, film: Film) -> Exported:
    return Exported(f"{grounding.flow.title} {film.name}!".upper())


SHOUTED = Format(".shout.txt", _shout)


def test_other_packages_offer_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = [EntryPoint("shout", f"{__name__}:SHOUTED", FORMATS.group)]
    monkeypatch.setattr(EntryPoint, "load", lambda point: SHOUTED)
    monkeypatch.setattr(registry, "entry_points", lambda group: offered if group == FORMATS.group else [])
    monkeypatch.setattr(FORMATS, "_parts", dict(FORMATS._parts))
    assert "shout" in FORMATS
    assert make_grounding([0], video="a.mp4").export("shout").text == "SALAD A.MP4!"

"""Old names work for one release and say the new ones."""

from __future__ import annotations

import sys
import types

import pytest

from graph2vid._deprecated import renamed, renamed_attributes


@renamed(threads="workers", breaking="violation")
def _options(first: int = 0, *, workers: int = 1, violation: float = 1.0) -> tuple[int, int, float]:
    """Return them."""
    return first, workers, violation


def test_an_old_argument_works_and_warns_at_the_caller() -> None:
    with pytest.warns(DeprecationWarning, match="'threads' of _options.* is called 'workers' now") as caught:
        assert _options(3, threads=2) == (3, 2, 1.0)
    assert caught[0].filename == __file__


def test_new_arguments_do_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    assert _options(workers=4, violation=0.5) == (0, 4, 0.5)
    assert not recwarn.list
    assert _options.__doc__ == "Return them."


def test_old_and_new_together_are_refused() -> None:
    with pytest.raises(TypeError, match="give one of them"):
        _options(threads=2, workers=2)


def test_an_old_attribute_of_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("made_up")
    module.New = 7  # type: ignore[attr-defined]
    module.__getattr__ = renamed_attributes("made_up", Old="New", Moved="graph2vid.errors.InputError")  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "made_up", module)
    with pytest.warns(DeprecationWarning, match=r"made_up.Old is called made_up.New now") as caught:
        assert module.Old == 7
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match=r"is called graph2vid.errors.InputError now"):
        assert module.Moved.__name__ == "InputError"
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        _ = module.other

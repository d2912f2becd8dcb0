"""The cells of tables: figures in words, narrow and rounded."""

from __future__ import annotations

import math
from typing import Any

from graph2vid.evaluate.engine import NOT_EXACT
from graph2vid.evaluate.intervals import Interval


def method(row: dict[str, Any]) -> str:
    """Return the name of a method, marked where it is not exact."""
    return row["method"] if row["exact"] else f"{row['method']} ({NOT_EXACT})"


def percent(value: float) -> str:
    """Return a figure in percent; a dash where there is none."""
    return "—" if math.isnan(value) else "100" if value > 99.95 else f"{value:.1f}"


def heading(name: str) -> str:
    """Return the name of a method for a narrow column: it may break at a blank."""
    return {"argmax+background": "argmax +bg", "true-order-repeats": "true-order repeats"}.get(
        name, name.replace(":", ": ")
    )


def both(row: dict[str, Any]) -> str:
    """Return acc and iou."""
    return f"{percent(row['acc'])}/{percent(row['iou'])}" if row["videos"] else "—"


def span(found: Interval) -> str:
    """Return a figure and its interval."""
    return "—" if math.isnan(found.mean) else f"{percent(found.mean)} [{percent(found.low)}, {percent(found.high)}]"


def signed_span(found: dict[str, float]) -> str:
    """Return a difference and its interval."""
    return "—" if math.isnan(found["mean"]) else f"{found['mean']:+.1f} [{found['low']:+.1f}, {found['high']:+.1f}]"


def milliseconds(seconds: float | None) -> str:
    """Return a time per video."""
    return "—" if seconds is None else f"{1000 * seconds:.2f}" if seconds < 0.1 else f"{1000 * seconds:,.0f}"


def count(value: float | None) -> str:
    """Return a number of things."""
    if value is None:
        return "—"
    if not math.isfinite(value):
        return "> 1e300"
    return f"{value:,.0f}" if value < 1e7 else f"{value:.1e}"


def sorts(row: dict[str, Any]) -> str:
    """Return a number of topological sorts, or its bounds."""
    if row["sorts"] is not None:
        return count(row["sorts"])
    return f"{count(row['sorts_lower'])} … {count(row['sorts_upper'])}"


def seconds(value: float) -> str:
    """Return a span of time in a fitting unit."""
    if not value < 1e5:
        return f"{value / 31_557_600:.1e} years" if value > 3e7 else f"{value / 86400:,.0f} days"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"


def word(value: Any) -> str:
    """Return the value of an option."""
    return f"{value:g}" if isinstance(value, float) else str(value)

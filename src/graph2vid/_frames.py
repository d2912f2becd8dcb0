"""Tables of pandas, which is imported where they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from graph2vid.errors import InputError, needing

if TYPE_CHECKING:
    from pandas import DataFrame


def data_frame(rows: Iterable[Mapping[str, Any]], columns: Iterable[str] | None = None) -> DataFrame:
    """Return rows as a DataFrame; without columns, those of the rows."""
    with needing("tables of pandas need the package pandas", "pandas"):
        import pandas
    return pandas.DataFrame(list(rows), columns=None if columns is None else list(columns))


def rows_of(frame: DataFrame, columns: Iterable[str], what: str) -> list[dict[str, Any]]:
    """Return the rows of a DataFrame with plain values, None where there is none; it must have ``columns``."""
    there = [str(name) for name in frame.columns]
    if missing := [name for name in columns if name not in there]:
        raise InputError(f"{what} has no column {missing[0]!r}; it has: {', '.join(there) or 'none'}")
    values = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    return [dict(zip(there, row, strict=True)) for row in values]

"""All edits of a flow graph since its project began: undo and redo."""

from __future__ import annotations

from typing import Any

from graph2vid._files import check_format
from graph2vid.errors import FormatError, InputError
from graph2vid.studio.drafts import Draft
from graph2vid.studio.edits import apply, read_entries

KIND = "graph2vid-edits"
VERSION = 1
_MOST_ENTRIES = 500


class History:
    """A log of edits and the place in it; immutable.

    Attributes
    ----------
    entries : tuple
        The edits, oldest first; those from ``at`` on were undone and can be redone.
    at : int
        How many of them hold.
    revision : int
        Grows by one with each edit, undo and redo: it tells two states apart.
    """

    def __init__(self, drafts: tuple[Draft | None, ...], entries: tuple[Any, ...], at: int, revision: int) -> None:
        self._drafts = drafts  # before the first entry, and after each
        self.entries = entries
        self.at = at
        self.revision = revision

    @classmethod
    def empty(cls) -> History:
        """Return the history of a project without a flow graph."""
        return cls((None,), (), 0, 0)

    @property
    def draft(self) -> Draft | None:
        """The flow graph as it is now."""
        return self._drafts[self.at]

    def edited(self, entry: Any) -> History:
        """Return the history after one more edit; what was undone is gone then."""
        drafts = (*self._drafts[: self.at + 1], apply(entry, self.draft))
        entries = (*self.entries[: self.at], entry)
        surplus = max(0, len(entries) - _MOST_ENTRIES)
        return History(drafts[surplus:], entries[surplus:], len(entries) - surplus, self.revision + 1)

    def undone(self) -> History:
        """Return the history one edit back."""
        if self.at == 0:
            raise InputError("there is nothing to undo")
        return History(self._drafts, self.entries, self.at - 1, self.revision + 1)

    def redone(self) -> History:
        """Return the history one edit on."""
        if self.at == len(self.entries):
            raise InputError("there is nothing to redo")
        return History(self._drafts, self.entries, self.at + 1, self.revision + 1)

    def to_json(self) -> dict[str, Any]:
        """Return the log as a JSON document."""
        base = self._drafts[0]
        return {
            "format": KIND,
            "version": VERSION,
            "revision": self.revision,
            "at": self.at,
            "base": None if base is None else base.to_json(),
            "edits": [entry.model_dump(mode="json") for entry in self.entries],
        }

    @classmethod
    def from_json(cls, value: Any, source: str) -> History:
        """Read a log; the drafts are made again, edit by edit."""
        document = check_format(value, kind=KIND, version=VERSION, source=source)
        entries = read_entries(document.get("edits"), source)
        at, revision = document.get("at"), document.get("revision")
        if not isinstance(at, int) or not 0 <= at <= len(entries) or not isinstance(revision, int):
            raise FormatError(f"{source}: at must be a place among {len(entries)} edits, revision a whole number")
        base = document.get("base")
        drafts = [None if base is None else Draft.from_json(base, source)]
        for entry in entries:
            drafts.append(apply(entry, drafts[-1]))
        return cls(tuple(drafts), tuple(entries), at, revision)

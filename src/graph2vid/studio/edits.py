"""The edits of a flow graph, as the API takes them, and the log of a project that keeps them: undo and redo."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from graph2vid._files import check_format
from graph2vid.errors import FormatError, GraphError, InputError
from graph2vid.flow import FlowGraph
from graph2vid.studio.corrections import Correction
from graph2vid.studio.drafts import MOST_CHARACTERS, MOST_STEPS, Draft

KIND = "graph2vid-edits"
VERSION = 1
_MOST_ENTRIES = 500

StepId = Annotated[str, Field(min_length=1, max_length=200)]
StepText = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]
_Texts = Annotated[tuple[StepText, ...], Field(min_length=2, max_length=20)]
_Steps = Annotated[tuple[StepId, ...], Field(min_length=2, max_length=MOST_STEPS)]


class _Edit(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Replace(_Edit):
    """Put another flow graph in place of this one: what a parser found, or a file holds."""

    op: Literal["replace"]
    source: str
    flow: dict[str, Any]


class Corrected(_Edit):
    """Corrections came or went. The flow graph stays as it is; undo and redo go over this, too."""

    op: Literal["correct"]
    removed: tuple[dict[str, Any], ...] = ()
    added: tuple[dict[str, Any], ...] = ()

    def applied(self, corrections: tuple[Correction, ...], is_undo: bool = False) -> tuple[Correction, ...]:
        """Return the corrections after it, or before."""
        gone, come = ([Correction.from_json(one) for one in some] for some in (self.removed, self.added))
        if is_undo:
            gone, come = come, gone
        return (*(one for one in corrections if one not in gone), *come)


_DONE_BY: dict[str, Callable[..., Draft]] = {}
"""The name of an edit → the method of drafts that does it; its fields are the arguments."""


def _edit(op: str, method: Callable[..., Draft], **fields: Any) -> Any:
    """Return the model of an edit; a field is its type, or the type and a default."""
    _DONE_BY[op] = method
    given: dict[str, Any] = {name: kind if isinstance(kind, tuple) else (kind, ...) for name, kind in fields.items()}
    given = {"op": (Literal[op], ...), **given}
    return create_model(op.title().replace("-", ""), __base__=_Edit, __doc__=method.__doc__, **given)


AddStep = _edit("add-step", Draft.with_step, text=StepText, after=(StepId | None, None))
_EDITS = (
    _edit("add-edge", Draft.with_edge, before=StepId, after=StepId),
    _edit("remove-edge", Draft.without_edge, before=StepId, after=StepId),
    _edit("reverse-edge", Draft.with_edge_reversed, before=StepId, after=StepId),
    AddStep,
    _edit("remove-step", Draft.without_step, step=StepId),
    _edit("rename", Draft.renamed, step=StepId, text=StepText),
    _edit("optional", Draft.with_optional, step=StepId, optional=bool),
    _edit("add-alternative", Draft.with_alternative, step=StepId, other=StepId),
    _edit("remove-alternative", Draft.without_alternative, step=StepId),
    _edit("split", Draft.with_split, step=StepId, texts=_Texts),
    _edit("merge", Draft.with_merged, steps=_Steps, text=(StepText | None, None)),
)

Edit: Any = Annotated[reduce(or_, _EDITS), Field(discriminator="op")]
"""What a person does to the graph, one thing at a time."""

_Entry: Any = Annotated[reduce(or_, (*_EDITS, Replace, Corrected)), Field(discriminator="op")]
_ENTRIES: TypeAdapter[list[Any]] = TypeAdapter(list[_Entry])


_WORDS = {
    "correct": "the correction",
    "replace": "the new graph",
    "add-edge": "the new link",
    "remove-edge": "the removal of a link",
    "reverse-edge": "the reversal of a link",
    "add-step": "the new step",
    "remove-step": "the removal of a step",
    "rename": "the new text",
    "optional": "the change of what is optional",
    "add-alternative": "the alternative",
    "remove-alternative": "the removal of an alternative",
    "split": "the split",
    "merge": "the merge",
}


def apply(entry: Any, draft: Draft | None) -> Draft | None:
    """Return the draft after an entry of the log."""
    if isinstance(entry, Corrected):
        return draft
    if isinstance(entry, Replace):
        return Draft.from_json(entry.flow, entry.source or "flow graph")
    if draft is None:
        if isinstance(entry, AddStep) and entry.after is None:
            return Draft(FlowGraph.bag([entry.text]))
        raise GraphError("there is no flow graph yet: parse a procedure, open a flow graph, or add a step")
    return _DONE_BY[entry.op](draft, **entry.model_dump(exclude={"op"}))


def read_entries(value: Any, source: str) -> list[Any]:
    """Read the entries of a log; messages name ``source``."""
    try:
        return _ENTRIES.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise FormatError(f"{source}: edits.{where}: {first['msg']}") from None


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
    corrections : tuple of Correction
        As they are now.
    """

    def __init__(
        self,
        drafts: tuple[Draft | None, ...],
        entries: tuple[Any, ...],
        at: int,
        revision: int,
        corrections: tuple[Correction, ...] = (),
    ) -> None:
        self._drafts = drafts  # before the first entry, and after each
        self.entries, self.at, self.revision, self.corrections = entries, at, revision, corrections

    @classmethod
    def empty(cls, corrections: tuple[Correction, ...] = ()) -> History:
        """Return the history of a project without a flow graph."""
        return cls((None,), (), 0, 0, corrections)

    @property
    def draft(self) -> Draft | None:
        """The flow graph as it is now."""
        return self._drafts[self.at]

    def edited(self, entry: Any) -> History:
        """Return the history after one more edit; what was undone is gone then."""
        drafts = (*self._drafts[: self.at + 1], apply(entry, self.draft))
        entries = (*self.entries[: self.at], entry)
        surplus = max(0, len(entries) - _MOST_ENTRIES)
        known = entry.applied(self.corrections) if isinstance(entry, Corrected) else self.corrections
        return History(drafts[surplus:], entries[surplus:], len(entries) - surplus, self.revision + 1, known)

    def corrected(self, corrections: tuple[Correction, ...]) -> History:
        """Return the history after these have taken the place of the corrections; itself if they are the same."""
        old, new = self.corrections, corrections
        removed = tuple(one.to_json() for one in old if one not in new)
        added = tuple(one.to_json() for one in new if one not in old)
        return self.edited(Corrected(op="correct", removed=removed, added=added)) if removed or added else self

    def undone(self) -> History:
        """Return the history one edit back."""
        return self._moved(-1, "undo")

    def redone(self) -> History:
        """Return the history one edit on."""
        return self._moved(1, "redo")

    def _moved(self, by: int, what: str) -> History:
        if not 0 <= self.at + by <= len(self.entries):
            raise InputError(f"there is nothing to {what}")
        entry = self.entries[min(self.at, self.at + by)]
        known = entry.applied(self.corrections, by < 0) if isinstance(entry, Corrected) else self.corrections
        return History(self._drafts, self.entries, self.at + by, self.revision + 1, known)

    @property
    def undo_words(self) -> str:
        """What undo would take back; empty where there is nothing."""
        return _WORDS.get(self.entries[self.at - 1].op, "the last edit") if self.at else ""

    @property
    def redo_words(self) -> str:
        """What redo would do again; empty where there is nothing."""
        return _WORDS.get(self.entries[self.at].op, "the edit") if self.at < len(self.entries) else ""

    def to_json(self) -> dict[str, Any]:
        """Return the log as a JSON document."""
        base = self._drafts[0]
        return {
            "format": KIND,
            "version": VERSION,
            "revision": self.revision,
            "at": self.at,
            "base": None if base is None else base.to_json(),
            "corrections": [one.to_json() for one in self.corrections],
            "edits": [entry.model_dump(mode="json") for entry in self.entries],
        }

    @classmethod
    def from_json(cls, value: Any, source: str, corrections: tuple[Correction, ...] = ()) -> History:
        """Read a log; the drafts are made again, edit by edit. ``corrections`` are those of a log that has none."""
        document = check_format(value, kind=KIND, version=VERSION, source=source)
        entries = read_entries(document.get("edits"), source)
        at, revision = document.get("at"), document.get("revision")
        if not isinstance(at, int) or not 0 <= at <= len(entries) or not isinstance(revision, int):
            raise FormatError(f"{source}: at must be a place among {len(entries)} edits, revision a whole number")
        base = document.get("base")
        drafts = [None if base is None else Draft.from_json(base, source)]
        for entry in entries:
            drafts.append(apply(entry, drafts[-1]))
        kept = document.get("corrections")
        if kept is not None and not isinstance(kept, list):
            raise FormatError(f"{source}: corrections must be a list")
        known = corrections if kept is None else tuple(Correction.from_json(one, source) for one in kept)
        return cls(tuple(drafts), tuple(entries), at, revision, known)

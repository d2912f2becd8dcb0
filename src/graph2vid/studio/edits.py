"""The edits of a flow graph, as the API takes them, and the log of a project that keeps them: undo and redo."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
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


@dataclass(frozen=True)
class Known:
    """What is known about the videos of a project, by their ids.

    Attributes
    ----------
    corrections : mapping of str to tuple of Correction
    checked : frozenset of str
        The videos of which a person has said that all is right now.
    learned : tuple of int
        The numbers of the task models that were learnt, the one in use last.
    """

    corrections: Mapping[str, tuple[Correction, ...]] = field(default_factory=dict)
    checked: frozenset[str] = frozenset()
    learned: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it for JSON; the corrections of the first video stand where those of the only one stood."""
        listed = {video: [one.to_json() for one in some] for video, some in self.corrections.items() if some}
        more = {video: some for video, some in listed.items() if video}
        return {
            "corrections": listed.get("", []),
            "more": more,
            "checked": sorted(self.checked),
            "learned": self.learned,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], source: str) -> Known:
        """Read what :meth:`to_json` gives."""
        more, checked, learned = (document.get(key) or kind() for key, kind in _KNOWN)
        listed = {"": document.get("corrections"), **more} if isinstance(more, dict) else {}
        lists = [*listed.values(), checked, learned]
        if not lists or not all(isinstance(one, list) for one in lists) or not {*map(type, learned)} <= {int}:
            raise FormatError(f"{source}: corrections, checked and learned must be lists")
        corrections = {
            video: tuple(Correction.from_json(one, source) for one in some) for video, some in listed.items()
        }
        return cls(corrections, frozenset(map(str, checked)), tuple(learned))


_KNOWN: tuple[tuple[str, Callable[[], Any]], ...] = (("more", dict), ("checked", list), ("learned", list))


class _Noted(_Edit):
    """Something became known. The flow graph stays as it is; undo and redo go over this, too."""

    def applied(self, known: Known, is_undo: bool = False) -> Known:
        """Return what is known after it, or before."""
        raise NotImplementedError


class Corrected(_Noted):
    """Corrections of a video came or went."""

    op: Literal["correct"]
    video: str = ""
    removed: tuple[dict[str, Any], ...] = ()
    added: tuple[dict[str, Any], ...] = ()

    def applied(self, known: Known, is_undo: bool = False) -> Known:
        """Return what is known after it, or before."""
        gone, come = ([Correction.from_json(one) for one in some] for some in (self.removed, self.added))
        if is_undo:
            gone, come = come, gone
        kept = (one for one in known.corrections.get(self.video, ()) if one not in gone)
        return replace(known, corrections={**known.corrections, self.video: (*kept, *come)})


class Checked(_Noted):
    """A person says that all of a video is right now, or takes that back."""

    op: Literal["checked"]
    video: str = ""
    checked: bool = True

    def applied(self, known: Known, is_undo: bool = False) -> Known:
        """Return what is known after it, or before."""
        is_checked = self.checked != is_undo
        return replace(known, checked=known.checked | {self.video} if is_checked else known.checked - {self.video})


class Learned(_Noted):
    """A task model was learnt from the checked videos, and the others were grounded with it."""

    op: Literal["learn"]
    number: int

    def applied(self, known: Known, is_undo: bool = False) -> Known:
        """Return what is known after it, or before."""
        others = tuple(one for one in known.learned if one != self.number)
        return replace(known, learned=others if is_undo else (*others, self.number))


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

_Entry: Any = Annotated[reduce(or_, (*_EDITS, Replace, Corrected, Checked, Learned)), Field(discriminator="op")]
_ENTRIES: TypeAdapter[list[Any]] = TypeAdapter(list[_Entry])


_WORDS = {
    "correct": "the correction",
    "checked": "the mark of a checked video",
    "learn": "what was learnt",
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
    if isinstance(entry, _Noted):
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
    known : Known
        What is known about the videos, as it is now.
    """

    def __init__(
        self, drafts: tuple[Draft | None, ...], entries: tuple[Any, ...], at: int, revision: int, known: Known
    ) -> None:
        self._drafts = drafts  # before the first entry, and after each
        self.entries, self.at, self.revision, self.known = entries, at, revision, known

    @classmethod
    def empty(cls, corrections: tuple[Correction, ...] = ()) -> History:
        """Return the history of a project without a flow graph."""
        return cls((None,), (), 0, 0, Known({"": corrections}))

    @property
    def draft(self) -> Draft | None:
        """The flow graph as it is now."""
        return self._drafts[self.at]

    def edited(self, entry: Any) -> History:
        """Return the history after one more edit; what was undone is gone then."""
        drafts = (*self._drafts[: self.at + 1], apply(entry, self.draft))
        entries = (*self.entries[: self.at], entry)
        surplus = max(0, len(entries) - _MOST_ENTRIES)
        known = entry.applied(self.known) if isinstance(entry, _Noted) else self.known
        return History(drafts[surplus:], entries[surplus:], len(entries) - surplus, self.revision + 1, known)

    def corrected(self, corrections: tuple[Correction, ...], video: str = "") -> History:
        """Return the history after these have taken the place of a video's corrections; itself if they are the same."""
        old, new = self.known.corrections.get(video, ()), corrections
        removed = tuple(one.to_json() for one in old if one not in new)
        added = tuple(one.to_json() for one in new if one not in old)
        entry = Corrected(op="correct", video=video, removed=removed, added=added)
        return self.edited(entry) if removed or added else self

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
        known = entry.applied(self.known, by < 0) if isinstance(entry, _Noted) else self.known
        return History(self._drafts, self.entries, self.at + by, self.revision + 1, known)

    @property
    def undo_words(self) -> str:
        """What undo would take back; empty where there is nothing."""
        return _WORDS.get(self.entries[self.at - 1].op, "the last edit") if self.at else ""

    @property
    def redo_words(self) -> str:
        """What redo would do again; empty where there is nothing."""
        return _WORDS.get(self.entries[self.at].op, "the edit") if self.at < len(self.entries) else ""

    @property
    def undo_video(self) -> str | None:
        """The video that undo would change something about; None where it concerns no single one."""
        return getattr(self.entries[self.at - 1], "video", None) if self.at else None

    def to_json(self) -> dict[str, Any]:
        """Return the log as a JSON document."""
        base = self._drafts[0]
        return {
            "format": KIND,
            "version": VERSION,
            "revision": self.revision,
            "at": self.at,
            "base": None if base is None else base.to_json(),
            **self.known.to_json(),
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
        kept = document if document.get("corrections") is not None else {"corrections": []}
        known = Known.from_json(kept, source)
        if kept is not document:
            known = replace(known, corrections={"": corrections})
        return cls(tuple(drafts), tuple(entries), at, revision, known)

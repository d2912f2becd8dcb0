"""The edits of a flow graph, as the API takes them and as the log of a project keeps them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from graph2vid.errors import FormatError, GraphError
from graph2vid.flow import FlowGraph
from graph2vid.studio.drafts import MOST_CHARACTERS, MOST_STEPS, Draft

StepId = Annotated[str, Field(min_length=1, max_length=200)]
StepText = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]


class _Edit(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    def apply(self, draft: Draft) -> Draft:
        """Return the draft after this edit."""
        raise NotImplementedError


class AddEdge(_Edit):
    """Let ``after`` wait for ``before``."""

    op: Literal["add-edge"]
    before: StepId
    after: StepId

    def apply(self, draft: Draft) -> Draft:
        return draft.with_edge(self.before, self.after)


class RemoveEdge(_Edit):
    """Let ``after`` no longer wait for ``before``."""

    op: Literal["remove-edge"]
    before: StepId
    after: StepId

    def apply(self, draft: Draft) -> Draft:
        return draft.without_edge(self.before, self.after)


class ReverseEdge(_Edit):
    """Turn the edge from ``before`` to ``after`` around."""

    op: Literal["reverse-edge"]
    before: StepId
    after: StepId

    def apply(self, draft: Draft) -> Draft:
        return draft.with_edge_reversed(self.before, self.after)


class AddStep(_Edit):
    """Add a step, which waits for the step ``after`` if one is named."""

    op: Literal["add-step"]
    text: StepText
    after: StepId | None = None

    def apply(self, draft: Draft) -> Draft:
        return draft.with_step(self.text, self.after)


class RemoveStep(_Edit):
    """Remove a step; what it waited for now comes before what waited for it."""

    op: Literal["remove-step"]
    step: StepId

    def apply(self, draft: Draft) -> Draft:
        return draft.without_step(self.step)


class Rename(_Edit):
    """Give a step another text."""

    op: Literal["rename"]
    step: StepId
    text: StepText

    def apply(self, draft: Draft) -> Draft:
        return draft.renamed(self.step, self.text)


class MarkOptional(_Edit):
    """Say whether a step may be left out."""

    op: Literal["optional"]
    step: StepId
    optional: bool

    def apply(self, draft: Draft) -> Draft:
        return draft.with_optional(self.step, self.optional)


class AddAlternative(_Edit):
    """Let ``step`` be done instead of ``other``: a video shows one of them."""

    op: Literal["add-alternative"]
    step: StepId
    other: StepId

    def apply(self, draft: Draft) -> Draft:
        return draft.with_alternative(self.step, self.other)


class RemoveAlternative(_Edit):
    """Let ``step`` be done whatever else is."""

    op: Literal["remove-alternative"]
    step: StepId

    def apply(self, draft: Draft) -> Draft:
        return draft.without_alternative(self.step)


class Split(_Edit):
    """Make several steps of one, each after the other."""

    op: Literal["split"]
    step: StepId
    texts: Annotated[tuple[StepText, ...], Field(min_length=2, max_length=20)]

    def apply(self, draft: Draft) -> Draft:
        return draft.with_split(self.step, self.texts)


class Merge(_Edit):
    """Make one step of several; without ``text`` their texts are joined."""

    op: Literal["merge"]
    steps: Annotated[tuple[StepId, ...], Field(min_length=2, max_length=MOST_STEPS)]
    text: StepText | None = None

    def apply(self, draft: Draft) -> Draft:
        return draft.with_merged(self.steps, self.text)


class Replace(BaseModel):
    """Put another flow graph in place of this one: what a parser found, or a file holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    op: Literal["replace"]
    source: str
    flow: dict[str, Any]


_Edits = (
    AddEdge
    | RemoveEdge
    | ReverseEdge
    | AddStep
    | RemoveStep
    | Rename
    | MarkOptional
    | AddAlternative
    | RemoveAlternative
    | Split
    | Merge
)

Edit = Annotated[_Edits, Field(discriminator="op")]
"""What a person does to the graph, one thing at a time."""

Entry = Annotated[_Edits | Replace, Field(discriminator="op")]
"""What the log of a project holds."""

_ENTRIES: TypeAdapter[list[Any]] = TypeAdapter(list[Entry])


def apply(entry: Any, draft: Draft | None) -> Draft:
    """Return the draft after an entry of the log."""
    if isinstance(entry, Replace):
        return Draft.from_json(entry.flow, entry.source or "flow graph")
    if draft is None:
        if isinstance(entry, AddStep) and entry.after is None:
            return Draft(FlowGraph.bag([entry.text]))
        raise GraphError("there is no flow graph yet: parse a procedure, open a flow graph, or add a step")
    changed: Draft = entry.apply(draft)
    return changed


def read_entries(value: Any, source: str) -> list[Any]:
    """Read the entries of a log; messages name ``source``."""
    try:
        return _ENTRIES.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise FormatError(f"{source}: edits.{where}: {first['msg']}") from None

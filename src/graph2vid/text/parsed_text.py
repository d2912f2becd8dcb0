"""Procedures in words, their entities, and flow graphs with the reasons for each edge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from graph2vid.errors import InputError
from graph2vid.flow import FlowGraph
from graph2vid.registry import Registry


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a procedure.

    Attributes
    ----------
    text : str
        The words, white space tidied; never empty.
    section : str
        The heading it stands under; may be empty.
    source : str
        Where it came from ("line 4", "recipeInstructions[2]"); may be empty.
    """

    text: str
    section: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure in words: at least one instruction, in the written order.

    Attributes
    ----------
    instructions : tuple of Instruction
    title : str
        May be empty.
    ingredients : tuple of str
        Ingredients or supplies as listed; may be empty.
    source : str
        The file or address it was read from; may be empty.
    """

    instructions: tuple[Instruction, ...]
    title: str = ""
    ingredients: tuple[str, ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        if not self.instructions:
            raise InputError(f"{self.source or 'the procedure'} holds no instruction")

    def __len__(self) -> int:
        return len(self.instructions)

    def __repr__(self) -> str:
        return f"Procedure({self.title!r}, {len(self)} instructions)"

    @property
    def texts(self) -> tuple[str, ...]:
        """The words of each instruction."""
        return tuple(instruction.text for instruction in self.instructions)


@dataclass(frozen=True, slots=True)
class Entity:
    """A stretch of words in an instruction that means one thing: an action, a food, a tool, …

    Attributes
    ----------
    instruction : int
        Which instruction, from 0.
    start, end : int
        Characters of the instruction's text, end not included.
    token : int
        The first token of the entity within its instruction, from 0.
    text : str
        The words.
    tag : str
        What it is. The learned parser uses the ten classes of the recipe flow graph corpus; the rules use its
        names for what they find ("Ac" action by the cook, "F" food or material, "T" tool).
    """

    instruction: int
    start: int
    end: int
    token: int
    text: str
    tag: str


@dataclass(frozen=True, slots=True)
class EntityEdge:
    """What connects two entities: ``source`` flows into, or is an argument of, ``target`` (indices of entities)."""

    source: int
    target: int
    label: str


@dataclass(frozen=True, slots=True)
class EntityGraph:
    """The fine-grained graph of a procedure: entities in the order of the text, and labelled edges between them."""

    entities: tuple[Entity, ...]
    edges: tuple[EntityEdge, ...]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one instruction waits for another.

    Attributes
    ----------
    before, after : int
        Instructions, from 0: ``after`` uses what ``before`` made.
    rule : str
        The rule, or label of the learned edge, that says so ("same noun", "pronoun", "t", …).
    words : str
        The words it rests on ("dough → the dough").
    """

    before: int
    after: int
    rule: str
    words: str = ""


@dataclass(frozen=True)
class Parse:
    """The flow graph of a procedure, and why it is as it is.

    Attributes
    ----------
    procedure : Procedure
    flow : FlowGraph
        One step per instruction, transitively reduced.
    parser : str
        Which parser made it.
    reasons : tuple of Reason
        All that was found between different instructions, forward in the text; several may support one edge, and an
        edge of ``flow`` has at least one. Some support precedences that other edges of ``flow`` imply.
    backward : tuple of Reason
        What pointed backwards in the text, and was dropped so that no cycle arises.
    entities : EntityGraph or None
        The fine-grained graph, where the parser makes one.
    probabilities : float32 array, shape (n, n), or None
        What :attr:`precedence` gives, where it is known already.
    """

    procedure: Procedure
    flow: FlowGraph
    parser: str
    reasons: tuple[Reason, ...] = ()
    backward: tuple[Reason, ...] = ()
    entities: EntityGraph | None = None
    probabilities: npt.NDArray[np.float32] | None = field(default=None, compare=False)

    @cached_property
    def precedence(self) -> npt.NDArray[np.float32]:
        """The probability that a step must come before a later one, [n, n]; 0 where it is not written before it.

        From the words, the graph and the written order together, calibrated on texts that were not learnt from.
        """
        from graph2vid.text.precedence import probabilities

        return probabilities(self)

    def __repr__(self) -> str:
        return f"Parse({self.flow!r}, parser {self.parser!r})"


Parser: TypeAlias = Callable[..., Parse]
"""Takes a :class:`Procedure` and keyword options of its own, gives a :class:`Parse`; loads heavy parts when called."""

PARSERS: Registry[Parser] = Registry("parser", "graph2vid.parsers")

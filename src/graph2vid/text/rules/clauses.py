"""What is read out of a sentence: actions, and the things they mention."""

from __future__ import annotations

from dataclasses import dataclass

from graph2vid.text import lexicon

SIMPLE_OBJECT = "object"
CONDITION = "condition"
RESULT = "result"


@dataclass(frozen=True, slots=True)
class Mention:
    """A thing that a sentence names.

    Attributes
    ----------
    head : str
        The noun, as a lemma in lower case ("mixture").
    words : frozenset of str
        The noun and what describes it, words and lemmas ("the", "beaten", "beat", "egg", "mixture").
    modifiers : frozenset of str
        The nouns among what describes it ("egg").
    role : str
        ``object``, ``condition`` (in a clause that describes a state), ``subject``, or the preposition ("into").
    kind : str
        ``thing``, ``container``, ``appliance``, ``tool``, ``part`` or ``pronoun``.
    text : str
        The words.
    start, end : int
        Characters of the instruction's text.
    token : int
        The noun among the tokens of the instruction.
    nested : bool
        It describes another thing ("lid on the pot").
    """

    head: str
    words: frozenset[str]
    modifiers: frozenset[str]
    role: str
    kind: str
    text: str
    start: int
    end: int
    token: int
    nested: bool = False

    @property
    def definite(self) -> bool:
        """Whether it is called "the …", "this …", "your …"."""
        return bool(self.words & {"the", "this", "that", "these", "those", "your", "same", "both", "each"})

    @property
    def left_over(self) -> bool:
        """Whether it is a share not used before: "the remaining oil", "two tablespoons of oil"."""
        return bool(self.words & lexicon.LEFT_OVER) or self.measured

    @property
    def measured(self) -> bool:
        """Whether it is a portion by measure: "two tablespoons of oil", "200g sugar"."""
        return bool(self.words & lexicon.MEASURES) or any(word[:1].isdigit() for word in self.words)


@dataclass(frozen=True, slots=True)
class Action:
    """An action that a sentence orders.

    Attributes
    ----------
    verb : str
        As a lemma in lower case; empty where a sentence has no verb.
    particle : str
        "in", "together", "aside", …; may be empty.
    text : str
        The words.
    start, end : int
        Characters of the instruction's text.
    token : int
        The verb among the tokens of the instruction.
    mentions : tuple of Mention
        In the order of the text.
    ordered : bool
        Whether it is an order, not the description of a state ("The cookies should be soft.").
    negated : bool
        Whether it says what not to do.
    """

    verb: str
    particle: str
    text: str
    start: int
    end: int
    token: int
    mentions: tuple[Mention, ...]
    ordered: bool = True
    negated: bool = False

    def of_role(self, *roles: str) -> tuple[Mention, ...]:
        """Return the mentions in these roles that stand for themselves."""
        return tuple(mention for mention in self.mentions if mention.role in roles and not mention.nested)

    @property
    def objects(self) -> tuple[Mention, ...]:
        """What is acted on."""
        return self.of_role(SIMPLE_OBJECT)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of an instruction.

    Attributes
    ----------
    instruction : int
        Which instruction, from 0.
    actions : tuple of Action
        At least one; of a sentence without a verb, one with an empty verb.
    opening : str
        The adverbial it begins with, in lower case.
    begins : int
        Where the order begins after the opening, in characters of the instruction's text.
    """

    instruction: int
    actions: tuple[Action, ...]
    opening: str = ""
    begins: int = 0

"""What is read out of a sentence, and what is open while a procedure is followed.

A sentence holds actions and the things they mention; it may begin a thread, be a remark, or one of several additions.
Products of earlier actions stay open for later ones to use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from graph2vid.text import lexicon


class Mention(NamedTuple):
    """A thing that a sentence names.

    Attributes
    ----------
    text : str
        The words.
    start, end : int
        Characters of the instruction's text.
    token : int
        The noun among the tokens of the instruction.
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
    nested : bool
        It describes another thing ("lid on the pot").
    """

    text: str
    start: int
    end: int
    token: int
    head: str
    words: frozenset[str]
    modifiers: frozenset[str]
    role: str
    kind: str
    nested: bool = False

    @property
    def definite(self) -> bool:
        """Whether it is called "the …", "this …", "your …"."""
        return bool(self.words & {"the", "this", "that", "these", "those", "your", "same", "both", "each"})

    @property
    def indefinite(self) -> bool:
        """Whether it is called "a …"."""
        return bool(self.words & {"a", "an"})

    @property
    def left_over(self) -> bool:
        """Whether it is a share not used before: "the remaining oil", "two tablespoons of oil"."""
        return bool(self.words & lexicon.LEFT_OVER) or self.measured

    @property
    def measured(self) -> bool:
        """Whether it is a portion by measure: "two tablespoons of oil", "200g sugar"."""
        return bool(self.words & lexicon.MEASURES) or any(word[:1].isdigit() for word in self.words)


class Action(NamedTuple):
    """An action that a sentence orders.

    Attributes
    ----------
    text : str
        The words.
    start, end : int
        Characters of the instruction's text.
    token : int
        The verb among the tokens of the instruction.
    verb : str
        As a lemma in lower case; empty where a sentence has no verb.
    particle : str
        "in", "together", "aside", …; may be empty.
    mentions : tuple of Mention
        In the order of the text.
    ordered : bool
        Whether it is an order, not the description of a state ("The cookies should be soft.").
    negated : bool
        Whether it says what not to do.
    """

    text: str
    start: int
    end: int
    token: int
    verb: str
    particle: str
    mentions: tuple[Mention, ...]
    ordered: bool = True
    negated: bool = False

    @property
    def objects(self) -> tuple[Mention, ...]:
        """What is acted on."""
        return tuple(mention for mention in self.mentions if mention.role == "object" and not mention.nested)

    @property
    def names_supplies(self) -> bool:
        """Whether all that is needed is acted on: "your tools"."""
        return any(mention.head in lexicon.SUPPLIES for mention in self.objects)

    @property
    def gathers(self) -> bool:
        """Whether it gets together what is needed: "Gather your tools."."""
        return self.verb in lexicon.GATHERING and self.names_supplies


class Sentence(NamedTuple):
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


MOST_OPEN = 48
"""How many products are kept in mind; the oldest is forgotten first."""


@dataclass(slots=True, eq=False)
class Product:
    """What an action made, and all that went into it.

    Attributes
    ----------
    makers : tuple of int
        The actions (counted over the procedure) that made it; several if their order does not matter.
    base : tuple of int
        The actions that made what those were done to.
    before : tuple of int
        The actions of earlier instructions that made what went into it.
    pile : bool
        Whether the makers did nothing but put things together.
    kind : str
        ``material``; ``tool`` (a greased tin, a hot oven); ``heat`` (hot oil, boiling water) that cooking uses up.
    things : dict
        The nouns in it, each with the nouns that describe it.
    main : set of str
        The nouns that were acted on, rather than added.
    names : set of str
        What it has been called since.
    container : str
        What it is in; may be empty.
    aside : bool
        Set aside: not what is being worked on.
    done : set of str
        The verbs of what has been done to it.
    purpose : str
        What it is for, if that was said ("for the sauce"); may be empty.
    """

    makers: tuple[int, ...]
    base: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    pile: bool = False
    kind: str = "material"
    things: dict[str, frozenset[str]] = field(default_factory=dict)
    main: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    container: str = ""
    aside: bool = False
    purpose: str = ""

    def learn(self, mention: Mention, main: bool) -> None:
        """Remember that a thing went into the product."""
        self.things[mention.head] = self.things.get(mention.head, frozenset()) | mention.modifiers
        if main:
            self.main.add(mention.head)

    def absorb(self, other: Product) -> None:
        """Take in all that is known of another product."""
        for noun, modifiers in other.things.items():
            self.things[noun] = self.things.get(noun, frozenset()) | modifiers
        self.main |= other.main
        self.names |= other.names
        self.done |= other.done
        self.container = self.container or other.container
        self.purpose = self.purpose or other.purpose


class Use(NamedTuple):
    """An action uses a product: by which rule, and because of which words or which mention of a thing."""

    product: Product
    rule: str
    words: str
    mention: Mention | None = None


class Workplace:
    """What is at hand.

    Attributes
    ----------
    products : list of Product
        The open products, oldest first.
    emptied : dict
        For each container that something was taken out of, what was taken out last.
    supplies : Product or None
        What was got together before the work.
    bought : frozenset of str
        Words of the list of ingredients.
    fresh : bool
        The sentence begins something apart from the work at hand.
    last : bool
        The instruction is the last one.
    """

    def __init__(self, bought: frozenset[str] = frozenset()) -> None:
        self.products: list[Product] = []
        self.emptied: dict[str, Product] = {}
        self.supplies: Product | None = None
        self.bought = bought
        self.fresh = False
        self.last = False

    def put(self, product: Product) -> None:
        """Open a product."""
        self.products.append(product)
        del self.products[:-MOST_OPEN]

    def take(self, product: Product) -> None:
        """Close a product: it has gone into another one."""
        self.products = [other for other in self.products if other is not product]

    def latest(self, *kinds: str) -> Product | None:
        """Return the product of these kinds last worked on; one set aside only if there is no other."""
        fitting = list(self.open(*kinds))
        return next((product for product in fitting if not product.aside), fitting[0] if fitting else None)

    def open(self, *kinds: str) -> Iterator[Product]:
        """Return the open products of these kinds, latest first."""
        return (product for product in reversed(self.products) if product.kind in kinds)


_MOST_WORDS = 12


def starts_thread(sentence: Sentence) -> bool:
    """Tell whether a sentence begins something apart from the work at hand.

    "**Meanwhile**, chop the onions.", "**In another pan**, melt the butter.", "**For the sauce**: whisk the eggs."
    """
    first = sentence.actions[0]
    words = set(sentence.opening.replace(",", " ").split())
    kinds = {m.kind for m in first.objects}
    if purpose(sentence.opening) or (words & lexicon.MEANWHILE and kinds & {"thing", "appliance", "container"}):
        return True
    apart = any(m.kind == "container" and m.role == "in" and m.words & _APART for m in first.mentions)
    return apart and "thing" in kinds and first.verb not in lexicon.WITHDRAWING


def purpose(opening: str) -> str:
    """Return what an opening or a heading says the work is for; empty if it does not.

    >>> purpose("for the sauce: "), purpose("to make the filling, "), purpose("in a bowl, ")
    ('sauce', 'filling', '')
    """
    words = opening.lower().replace(",", " ").replace(":", " ").split()[:_MOST_WORDS]
    words = words[1:] if words[:1] == ["to"] else words
    is_purpose = words and (words[0] == "for" or words[0] in lexicon.MAKING)
    return next((word for word in words if word in lexicon.MIXTURES | lexicon.RESULTS), "") if is_purpose else ""


def names_purpose(mention: Mention) -> bool:
    """Tell whether a thing is named as what the work is for.

    "Mix the mayonnaise with ketchup **for the sauce**."
    """
    return mention.role == "for" and mention.definite and mention.head in lexicon.MIXTURES | lexicon.RESULTS


def is_plain_addition(action: Action, sentence: Sentence) -> bool:
    """Tell whether a sentence does nothing but put something to the work, so that its order among its like is free.

    "Add the sugar. Pour the water into the jug." are; "Add the eggs and beat well." is not.
    """
    if len(sentence.actions) != 1 or sentence.opening or not action.ordered or not action.objects:
        return False
    into = [m for m in action.mentions if m.kind == "container" and m.role in ("to", "into", "in")]
    adds = action.verb == "add" or action.particle == "in" or (into and action.verb in lexicon.PUTTING_INTO)
    others = [m for m in action.mentions if m not in into]
    plain = all(m.kind == "thing" and m.role in ("object", "with", "to") for m in others)
    return bool(adds) and plain and kind_of_product(action) == "material"


def kind_of_product(action: Action) -> str:
    """Tell what an action makes: a tool made ready, something hot to cook in, or material.

    "Grease the tin." makes a tool, "Heat the oil in a pan." heat, "Chop the onions." material.
    """
    kinds = {m.kind for m in action.objects}
    things = [m for m in action.objects if m.kind in ("thing", "part", "pronoun")]
    if action.gathers:
        return "tool"
    if action.verb in lexicon.PREPARING and not things and kinds & {"container", "appliance"}:
        if action.verb in ("turn", "set", "light") and "appliance" not in kinds:
            return "material"
        return "heat" if action.verb in ("heat", "warm") and "container" in kinds else "tool"
    pans = [m for m in action.mentions if m.kind == "container" and m.head in lexicon.PANS]
    in_pan = any(m.role in ("in", "into", "to") for m in pans)
    heated = in_pan or action.verb in ("heat", "melt", "bring", "boil", "warm")
    return "heat" if heated and things and all(m.head in lexicon.FATS for m in things) else "material"


_APART = lexicon.ANEW | {"a", "an"}

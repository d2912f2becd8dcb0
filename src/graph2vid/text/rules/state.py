"""What is open while a procedure is followed: products of earlier actions that later ones may use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from graph2vid.text.rules.clauses import Mention

MOST_OPEN = 48
"""How many products are kept in mind; the oldest is forgotten first."""

MATERIAL, TOOL, HEAT = "material", "tool", "heat"


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
    kind: str = MATERIAL
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


@dataclass(frozen=True, slots=True)
class Use:
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
        fitting = [product for product in self.products if product.kind in kinds]
        working = [product for product in fitting if not product.aside]
        chosen = working or fitting
        return chosen[-1] if chosen else None

    def open(self, *kinds: str) -> Iterator[Product]:
        """Return the open products of these kinds, latest first."""
        return (product for product in reversed(self.products) if product.kind in kinds)

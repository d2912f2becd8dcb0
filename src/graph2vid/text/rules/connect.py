"""Following a procedure action by action: which products each action uses, what it makes, and the graph of it all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from graph2vid.text import lexicon
from graph2vid.text.parsed_text import Entity, EntityEdge, EntityGraph
from graph2vid.text.rules import clauses
from graph2vid.text.rules.clauses import Action, Mention, Product, Sentence, Use, Workplace, names_purpose, purpose
from graph2vid.text.rules.implied import IMPLIED
from graph2vid.text.rules.references import REFERENCES


class Link(NamedTuple):
    """Between actions, counted over the procedure: ``after`` uses what ``before`` made, as ``use`` says."""

    before: int
    after: int
    use: Use


class Follower:
    """Goes through the sentences of a procedure in order and collects the links between its actions.

    Parameters
    ----------
    headings : sequence of str
        The heading that each instruction stands under.
    bought : frozenset of str
        Words of the list of ingredients.

    Attributes
    ----------
    actions : list of (int, Action)
        Each action with its instruction.
    links : list of Link
    """

    def __init__(self, headings: Sequence[str], bought: frozenset[str]) -> None:
        self.headings = headings
        self.place = Workplace(bought)
        self.actions: list[tuple[int, Action]] = []
        self.links: list[Link] = []
        self.section = ""

    def follow(self, sentence: Sentence) -> None:
        """Work through one sentence."""
        heading = self.headings[sentence.instruction]
        new_section = heading != self.section and bool(purpose(f"for {heading}"))
        self.section = heading
        self.place.fresh = clauses.starts_thread(sentence) or new_section
        self.place.last = sentence.instruction == len(self.headings) - 1
        for action in sentence.actions:
            self._make(action, sentence, self._uses(action, sentence))
            self.place.fresh = False

    def _uses(self, action: Action, sentence: Sentence) -> list[Use]:
        """Return the products that an action uses, each with a reason."""
        found: list[Use] = []
        for mention in action.mentions:
            if not _may_refer(mention, action, sentence):
                continue
            for name, reference in REFERENCES.items():
                if product := reference(mention, action, self.place):
                    found.append(Use(product, name, mention.text, mention))
                    break
        for name, implied in IMPLIED.items():
            known = {id(use.product) for use in found} if name != "addition" else set()
            products = [product for product in implied(action, found, self.place) if product]
            found += [Use(product, name, action.text) for product in products if id(product) not in known]
        return found

    def _make(self, action: Action, sentence: Sentence, uses: list[Use]) -> None:
        """Enter the links of an action and open its product."""
        number = len(self.actions)
        self.actions.append((sentence.instruction, action))
        moved = {id(use.product) for use in uses if use.mention is not None and use.mention.role == "object"}
        piles = [use.product for use in uses if use.product.pile and use.rule in ("addition", "container")]
        plain = clauses.is_plain_addition(action, sentence) and not any(id(pile) in moved for pile in piles)
        pile = piles[0] if plain and piles else None
        for use in uses:
            for maker in use.product.base if use.product is pile else use.product.makers:
                self.links.append(Link(maker, number, use))
        if action.negated or not action.ordered:  # a remark: "The dough should be soft.", "Do not overwork the dough."
            return
        product = Product((number,), kind=clauses.kind_of_product(action), pile=plain, done={action.verb})
        product.before = self._before(uses, sentence.instruction)
        meant_for = (mention.head for mention in action.mentions if names_purpose(mention))
        product.purpose = next(meant_for, "") or purpose(sentence.opening) or purpose(f"for {self.section}")
        if pile is not None:
            product.makers, product.base = (*pile.makers, number), pile.base
        elif plain:
            product.base = tuple(dict.fromkeys(maker for use in uses for maker in use.product.makers))
        for use in uses:
            if use.product.kind != "tool" or product.kind == "tool":
                self.place.take(use.product)
                product.absorb(use.product)
        referring = {id(use.mention) for use in uses}
        for mention in action.mentions:
            _remember(product, mention, action, id(mention) in referring)
        self._move(product, action)
        self.place.put(product)

    def _before(self, uses: list[Use], instruction: int) -> tuple[int, ...]:
        """Return the actions of earlier instructions behind what is used."""
        found: dict[int, None] = {}
        for use in uses:
            here = any(self.actions[maker][0] == instruction for maker in use.product.makers)
            found.update(dict.fromkeys(use.product.before if here else use.product.makers))
        return tuple(found)

    def _move(self, product: Product, action: Action) -> None:
        """Note where a product is now: taken out of something, set aside, or got together for later."""
        if action.verb in lexicon.WITHDRAWING:
            for mention in action.mentions:
                if mention.role in ("from", "of", "off") and mention.kind == "container":
                    self.place.emptied[mention.head] = product
                    product.container = ""
        if action.gathers:
            self.place.supplies = product
        product.aside = action.particle == "aside" or action.verb == "reserve"


def _may_refer(mention: Mention, action: Action, sentence: Sentence) -> bool:
    """Tell whether a mention may mean something made before, rather than what goes on or comes of the action."""
    made = mention.role == "object" and action.verb in lexicon.CREATING and mention.kind != "container"
    meanwhile = mention.role == "condition" and sentence.opening.startswith(("while", "whilst", "before"))
    in_opening = mention.start < sentence.begins and mention.kind != "container"
    comes_of_it = mention.role == "result" or made or names_purpose(mention)
    return not (comes_of_it or meanwhile or (in_opening and purpose(sentence.opening)))


def _remember(product: Product, mention: Mention, action: Action, known: bool) -> None:
    """Note in a product what its action mentions."""
    if mention.kind == "container" and mention.role in ("in", "into", "to", "onto", "on", "object"):
        product.container = mention.head
    if product.kind == "tool" and mention.role == "object" and mention.kind in ("container", "appliance", "tool"):
        product.learn(mention, main=True)
    if mention.kind not in ("thing", "part") or (mention.head in lexicon.PIECES and not mention.modifiers):
        return
    made = mention.role == "result" or (action.verb in lexicon.MAKING and mention.role == "object")
    if (known or made) and mention.head in lexicon.MIXTURES | lexicon.RESULTS:
        product.names.add(mention.head)
    elif mention.role != "condition":
        product.learn(mention, main=mention.role == "object" and action.verb not in lexicon.ADDING)


_TOOLS = ("container", "appliance", "tool")
_IMPLIED_LABELS = {"addition": "d", "oven": "t-comp", "hot pan": "d", "supplies": "t-comp"}


def entity_graph(actions: Sequence[tuple[int, Action]], links: Sequence[Link]) -> EntityGraph:
    """Build the graph of actions ("Ac"), materials ("F") and tools ("T").

    A thing flows into the action that names it: ``t`` what is acted on, ``d`` where it goes, ``t-comp`` what it is
    done with or in. An earlier action flows into a thing that means its product (``f-eq``, ``t-eq``), or directly into
    an action that uses it without naming it (``t``, ``d``, ``t-comp``).

    Parameters
    ----------
    actions : sequence of (int, Action)
        Each action with its instruction.
    links : sequence of Link

    Returns
    -------
    EntityGraph
    """
    found: dict[tuple[int, int, int], Entity] = {}
    for instruction, action in actions:
        parts: list[Action | Mention] = [*([action] if action.text else []), *action.mentions]
        for part in parts:
            tag = "Ac" if isinstance(part, Action) else "T" if part.kind in _TOOLS else "F"
            entity = Entity(instruction, part.start, part.end, part.token, part.text, tag)
            found.setdefault((instruction, part.start, part.end), entity)
    index = {place: number for number, place in enumerate(sorted(found))}
    edges: dict[tuple[int, int], str] = {}

    def connect(source: tuple[int, Action | Mention], target: tuple[int, Action | Mention], label: str) -> None:
        pair = tuple(index.get((instruction, part.start, part.end), -1) for instruction, part in (source, target))
        if pair[0] != pair[1] and min(pair) >= 0:
            edges.setdefault((pair[0], pair[1]), label)

    for instruction, action in actions:
        for mention in action.mentions:
            connect((instruction, mention), (instruction, action), _label(mention))
    for before, after, use in links:
        instruction, action = actions[after]
        if use.mention is not None:
            label = "t-eq" if use.mention.kind in _TOOLS else "f-eq"
            connect(actions[before], (instruction, use.mention), label)
        else:
            connect(actions[before], (instruction, action), _IMPLIED_LABELS.get(use.rule, "t"))
    edge_list = (EntityEdge(source, target, label) for (source, target), label in edges.items())
    return EntityGraph(tuple(found[place] for place in index), tuple(edge_list))


def _label(mention: Mention) -> str:
    if mention.kind in _TOOLS:
        return "t" if mention.role == "object" else "t-comp"
    return "d" if mention.role in ("to", "into", "over", "onto", "on", "in") else "t"

"""Rules that find what a mentioned thing is: the product of which earlier action.

Each rule takes a mention, the action it belongs to and the workplace, and returns the product meant, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from graph2vid.text import lexicon
from graph2vid.text.rules.clauses import Action, Mention, Product, Workplace

Rule: TypeAlias = Callable[[Mention, Action, Workplace], Product | None]


def pronoun(mention: Mention, action: Action, place: Workplace) -> Product | None:
    """A pronoun is what was worked on last; in a condition or after an object it is what the action itself works on.

    "Knead the dough. Cover **it** with a cloth."; but not "Heat the oven as hot as it will go.", nor "Grill the
    sausages, turning them often."
    """
    own = [thing for thing in action.objects if thing.kind in ("thing", "appliance")]
    after_object = mention.role == "object" and any(thing.start < mention.start for thing in own)
    if mention.kind != "pronoun" or mention.head in lexicon.EVERYTHING or after_object:
        return None
    return place.products[-1] if place.products and not (mention.role == "condition" and own) else None


def same_noun(mention: Mention, action: Action, place: Workplace) -> Product | None:
    """The same noun is the same thing, unless it is a further share of it or something used all over.

    "Boil the **potatoes**. … Add the **potatoes** to the pan."; "Loosen the **nuts**. … Remove the **nuts**."
    """
    if mention.kind not in ("thing", "part") or (mention.left_over and mention.head not in lexicon.MIXTURES):
        return None
    best, best_score = None, 0.0
    for product in place.open("material", "heat"):
        score = _likeness(mention, product)
        if score <= best_score or _fresh_portion(mention, action, product, place):
            continue
        if mention.head not in lexicon.STAPLES or _staple_meant(mention, action, product):
            best, best_score = product, score
    if best and place.fresh and best is place.latest("material") and mention.head not in best.main | best.names:
        # It lies in the work that is going on, and is not what that work is about: what went into it is meant, before
        # the last instruction. "Shift the chain onto the sprocket. Put the chain in a jar. Meanwhile, brush the
        # **sprocket**."
        return Product(best.before)
    return best


def _likeness(mention: Mention, product: Product) -> float:
    if mention.head in product.names:
        return 3.0
    stored = product.things.get(mention.head)
    if stored is not None:
        if mention.modifiers and stored and not mention.modifiers & stored:
            return 0.0
        return 1.0 + (mention.head in product.main) + 0.5 * bool(mention.modifiers & stored)
    if mention.head in lexicon.PIECES and mention.modifiers & product.things.keys():
        return 1.0 + bool(mention.modifiers & product.main)
    return float(any(mention.head in product.things[piece] for piece in lexicon.PIECES & product.things.keys()))


def _fresh_portion(mention: Mention, action: Action, product: Product, place: Workplace) -> bool:
    """Tell whether an ingredient is rather a new portion than part of a mixture made before.

    "Fry the onions with the peppers and the leeks. Add the milk, cheese and **onions**." takes new ones: what is added
    is not in the work at hand. "Toss the potatoes with the dressing. Wash the lettuce. Arrange the **potatoes**, beans
    and tuna on it." takes the potatoes.
    """
    mixes = action.verb in lexicon.FROM_SCRATCH | lexicon.ADDING or action.particle == "in"
    if not mixes or mention.role not in ("object", "with") or mention.head in product.names:
        return False
    nouns = {mention.head} | mention.modifiers
    listed = len(action.objects) >= 3 or (place.fresh and not mention.definite)
    elsewhere = product is not place.latest("material", "heat") and mention.head not in lexicon.STAPLES
    return listed and not (nouns & product.main and (len(product.things) <= 3 or elsewhere))


def _staple_meant(mention: Mention, action: Action, product: Product) -> bool:
    """Tell whether a common ingredient is the one used before, not another portion of it.

    "Boil the **water**. … Drop the pasta into the **water**." is; "Cool the eggs under water. Drop the beans into iced
    **water**." is not.
    """
    alone = mention.head in product.main and (len(product.things) <= 2 or product.aside)
    changed = any(word.endswith(("ed", "en", "ing")) for word in mention.words - {mention.head})
    if mention.role in ("condition", "subject"):
        return True
    if mention.role in ("to", "into", "from"):
        return mention.definite or mention.head in product.main
    mixes = action.verb in lexicon.FROM_SCRATCH | lexicon.ADDING or action.particle == "in"
    if mention.role == "object" and not mixes:
        return mention.definite and mention.head in product.main
    return alone and (changed or mention.definite)


def mixture_word(mention: Mention, action: Action, place: Workplace) -> Product | None:
    """A mixture is called by what is in it, by what it is for, or simply "the mixture".

    "Beat the eggs with the milk. Fry the bacon. Pour the **egg mixture** over it."; but not "Beat the butter and the
    sugar until the mixture is pale.", where it is what the action itself makes.
    """
    if mention.head not in lexicon.MIXTURES or mention.kind == "pronoun" or mention.indefinite:
        return None
    sure = mention.head in lexicon.SURE_MIXTURES
    portion = mention.measured or (action.verb in lexicon.FROM_SCRATCH and not mention.definite)
    made_here = mention.role == "condition" and sum(thing.kind == "thing" for thing in action.objects) > 1
    if (portion and not sure) or made_here or (mention.head == "ingredient" and mention.left_over):
        return None
    candidates = [product for product in place.open("material", "heat") if product.kind == "material" or product.names]
    named = [product for product in candidates if mention.head in product.names or mention.head == product.purpose]
    if mention.modifiers:
        described = [
            product
            for product in candidates
            if mention.modifiers & (product.things.keys() | product.names | {product.purpose})
        ] or [product for product in candidates if any(mention.modifiers & inner for inner in product.things.values())]
        if described:
            return max(described, key=lambda product: (bool(mention.modifiers & product.main), not product.aside))
        if not sure:
            return None
    if named:
        return named[0]
    worked_on = mention.role != "object" or action.verb not in lexicon.ADDING | lexicon.STIRRED_IN
    spoken_of = mention.definite or (worked_on and mention.role != "with")
    if not sure and (mention.head in place.bought or not spoken_of):
        return None
    current = place.latest("material") if not sure and not worked_on else None
    return _made_of(mention.head, candidates, current)


def _made_of(name: str, candidates: list[Product], current: Product | None = None) -> Product | None:
    """Choose the product whose ingredients fit a name best, the latest among equals, rather not the current one."""
    usual = lexicon.MADE_OF.get(name, frozenset())
    mixed = [product for product in candidates if len(product.things) >= 2] or candidates
    return max(mixed, key=lambda product: (len(usual & product.things.keys()), product is not current), default=None)


def general_word(mention: Mention, action: Action, place: Workplace) -> Product | None:
    """A general word stands for the things of its kind.

    "Brown the lamb. … Return the **meat** to the pan."
    """
    kinds = lexicon.KINDS.get(mention.head)
    listed = len(action.objects) >= 3 and mention.role == "object" and not mention.definite
    if kinds is None or mention.modifiers - {"all"} or listed:
        return None
    for product in place.open("material"):
        wholes = (product.things[piece] for piece in lexicon.PIECES & product.things.keys())
        if kinds & product.things.keys() or any(kinds & whole for whole in wholes):
            return product
    return None


def result(mention: Mention, action: Action, place: Workplace) -> Product | None:
    """What has been made may get a new name.

    "Bake for an hour. Turn the **cake** out."
    """
    piece = mention.head in lexicon.PIECES and not mention.modifiers and mention.definite
    fresh = mention.role == "with" or action.verb in ("mix", "combine", "whisk", "cut")
    if not (mention.head in lexicon.RESULTS or piece) or mention.kind != "thing" or mention.indefinite:
        return None
    if mention.role in ("into", "for", "as") or (fresh and not mention.definite):
        return None
    candidates = list(place.open("material"))
    if mention.head in lexicon.MADE_OF:
        return _made_of(mention.head, candidates)
    named_after = (product for product in candidates if mention.head in product.done)  # "Toast the bread."
    return next(named_after, place.latest("material"))


def renamed(mention: Mention, action: Action, place: Workplace) -> Product | None:
    """What is left to cool, chilled or served under a name not used before is what has been made.

    "Fold in the egg whites. Refrigerate **the mousse** for two hours."
    """
    named = mention.kind == "thing" and mention.role in ("object", "subject") and mention.definite
    taken_off = any(other.role in ("from", "off") and other.kind == "thing" for other in action.mentions)
    late = action.verb in lexicon.LATE and not taken_off
    return place.latest("material") if named and late and not mention.left_over else None


def excess(mention: Mention, action: Action, place: Workplace) -> Product | None:
    """What is too much of something, and what is skimmed or trimmed off, belongs to what is being worked on.

    "Brush the fish with oil. Wipe off **any drips**."; "Boil the jam. Skim off **the scum**."
    """
    taken_off = action.verb == "skim" or (action.particle == "off" and action.verb in lexicon.TRIMMING)
    too_much = mention.words & {"any", "excess"} or (taken_off and mention.definite)
    return place.latest("material") if mention.role == "object" and too_much else None


def part_of(mention: Mention, action: Action, place: Workplace) -> Product | None:
    """A part belongs to what is being worked on.

    "Press the dough into the tin. Trim the **edges**."
    """
    if mention.kind != "part" or mention.indefinite or mention.modifiers - {"pan", "meat", "cooking"}:
        return None
    of_object = mention.role in ("condition", "object") and any(thing.kind == "thing" for thing in action.objects)
    return place.latest("material") if not of_object and (mention.role != "with" or mention.definite) else None


def prepared_tool(mention: Mention, action: Action, place: Workplace) -> Product | None:
    """A tool that was made ready is used.

    "Grease a **loaf tin**. … Pour the batter into the **prepared tin**."
    """
    if mention.kind not in ("container", "appliance", "tool"):
        return None
    ready = bool(mention.words & _READY)
    for tool in place.open("tool"):
        modifiers = tool.things.get(mention.head, frozenset())
        fits = ready or not mention.modifiers or not modifiers or mention.modifiers & modifiers
        if mention.head in tool.main and fits:
            return tool
    if ready and mention.kind == "container":
        return next((tool for tool in place.open("tool") if tool.main & lexicon.CONTAINERS), None)
    return None


def container(mention: Mention, action: Action, place: Workplace) -> Product | None:
    """A container means what is in it.

    "Whisk the eggs **in a bowl**. Melt the butter. Pour it into **the bowl**."; "Brown the beef. Soften the onions in
    **the same pan**."
    """
    if mention.kind != "container" or mention.words & (_NOT_AT_HAND | lexicon.ANEW | _READY):
        return None
    if mention.definite or mention.role != "in":
        for same in ({mention.head}, lexicon.PANS if mention.head == "pan" else set()):
            for product in place.open("material", "heat"):
                if product.container in same and not product.aside:
                    return product
    used_last = place.latest("material", "heat") if "same" in mention.words else None
    return place.emptied.get(mention.head, used_last) if mention.definite else None


_NOT_AT_HAND = lexicon.words("a an its their")
_READY = lexicon.words("prepared greased lined buttered preheated oiled floured heated")

_FIRST = (pronoun, container, prepared_tool, mixture_word, same_noun)
_THEN = (general_word, result, part_of, excess, renamed)
REFERENCES: dict[str, Rule] = {rule.__name__.replace("_", " "): rule for rule in (*_FIRST, *_THEN)}
"""The rules by name, in the order in which they are tried; the first answer counts."""

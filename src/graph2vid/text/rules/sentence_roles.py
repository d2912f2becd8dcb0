"""What a sentence is in the whole: a new thread, a remark, one of several additions; and what an action makes."""

from __future__ import annotations

from graph2vid.text import lexicon
from graph2vid.text.rules.clauses import SIMPLE_OBJECT, Action, Mention, Sentence
from graph2vid.text.rules.state import HEAT, MATERIAL, TOOL

_MOST_WORDS = 12


def starts_thread(sentence: Sentence) -> bool:
    """Tell whether a sentence begins something apart from the work at hand.

    "**Meanwhile**, chop the onions.", "**In another pan**, melt the butter.", "**For the sauce**: whisk the eggs."
    """
    first = sentence.actions[0]
    words = set(sentence.opening.replace(",", " ").split())
    if words & lexicon.MEANWHILE and any(m.kind in ("thing", "appliance", "container") for m in first.objects):
        return True
    if purpose(sentence.opening):
        return True
    return (
        any(m.kind == "container" and m.role == "in" and m.words & _APART for m in first.mentions)
        and any(m.kind == "thing" for m in first.objects)
        and first.verb not in lexicon.WITHDRAWING
    )


def purpose(opening: str) -> str:
    """Return what an opening or a heading says the work is for; empty if it does not.

    >>> purpose("for the sauce: "), purpose("to make the filling, "), purpose("in a bowl, ")
    ('sauce', 'filling', '')
    """
    words = opening.lower().replace(",", " ").replace(":", " ").split()[:_MOST_WORDS]
    if words[:1] == ["to"]:
        words = words[1:]
    if words and (words[0] == "for" or words[0] in lexicon.MAKING):
        return next((word for word in words if word in lexicon.MIXTURES | lexicon.RESULTS), "")
    return ""


def names_purpose(mention: Mention) -> bool:
    """Tell whether a thing is named as what the work is for.

    "Mix the mayonnaise with ketchup **for the sauce**."
    """
    return mention.role == "for" and mention.definite and mention.head in lexicon.MIXTURES | lexicon.RESULTS


def is_remark(action: Action) -> bool:
    """Tell whether something is said of the work without doing anything to it.

    "The dough should be soft.", "Do not overwork the dough."
    """
    return action.negated or not action.ordered


def is_plain_addition(action: Action, sentence: Sentence) -> bool:
    """Tell whether a sentence does nothing but put something to the work, so that its order among its like is free.

    "Add the sugar. Pour the water into the jug." are; "Add the eggs and beat well." is not.
    """
    if len(sentence.actions) != 1 or sentence.opening or not action.ordered or not action.objects:
        return False
    into = [m for m in action.mentions if m.kind == "container" and m.role in ("to", "into", "in")]
    adds = action.verb == "add" or action.particle == "in" or (into and action.verb in lexicon.PUTTING_INTO)
    return (
        bool(adds)
        and kind_of_product(action) == MATERIAL
        and all(m in into or (m.kind == "thing" and m.role in (SIMPLE_OBJECT, "with", "to")) for m in action.mentions)
    )


def kind_of_product(action: Action) -> str:
    """Tell what an action makes: a tool made ready, something hot to cook in, or material.

    "Grease the tin." makes a tool, "Heat the oil in a pan." heat, "Chop the onions." material.
    """
    kinds = {m.kind for m in action.objects}
    things = [m for m in action.objects if m.kind in ("thing", "part", "pronoun")]
    if action.verb in lexicon.GATHERING and any(m.head in lexicon.SUPPLIES for m in action.objects):
        return TOOL
    if action.verb in lexicon.PREPARING and not things and kinds & {"container", "appliance"}:
        if action.verb in ("turn", "set", "light") and "appliance" not in kinds:
            return MATERIAL
        return HEAT if action.verb in ("heat", "warm") and "container" in kinds else TOOL
    heated = action.verb in ("heat", "melt", "bring", "boil", "warm") or any(
        m.kind == "container" and m.head in lexicon.PANS and m.role in ("in", "into", "to") for m in action.mentions
    )
    return HEAT if heated and things and all(m.head in lexicon.FATS for m in things) else MATERIAL


_APART = lexicon.ANEW | {"a", "an"}

"""Rules that find what an action uses without naming it.

Each rule takes an action, what has been found for it so far and the workplace, and returns further products used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TypeAlias

from graph2vid.text import lexicon
from graph2vid.text.rules.clauses import (
    CONDITION,
    HEAT,
    MATERIAL,
    SIMPLE_OBJECT,
    TOOL,
    Action,
    Mention,
    Product,
    Use,
    Workplace,
)

Rule: TypeAlias = Callable[[Action, Sequence[Use], Workplace], list[Product]]

_DESTINATIONS = lexicon.words("to into in over onto on around between under inside through with among")
_PLACES = lexicon.words("to into in over onto on")
_HEAT_LEVEL = lexicon.words("turn lower reduce raise increase")
_GRILLS = lexicon.words("grill barbecue bbq broiler")


def everything(action: Action, found: Sequence[Use], place: Workplace) -> list[Product]:
    """ "Everything" joins all that is open, "both sauces" the two made last.

    "Chop the tomatoes. Slice the cucumber. Toss **everything** together."
    """
    for mention in action.mentions:
        if "both" in mention.words and mention.head in lexicon.MIXTURES - {"ingredient"} | lexicon.RESULTS:
            return list(islice(place.open(MATERIAL), 2))
        total = mention.head in ("everything", "all") or (
            mention.head == "ingredient" and mention.words & {"all", "both"}
        )
        if total and mention.role != CONDITION:
            return list(place.open(MATERIAL, HEAT))
    return []


def oven(action: Action, found: Sequence[Use], place: Workplace) -> list[Product]:
    """Baking needs the oven that was heated, grilling the grill.

    "**Preheat the oven**. Mix the flour and the eggs. **Bake** for an hour."
    """
    needed = (lexicon.BAKING, {"oven"}), (lexicon.GRILLING, _GRILLS)
    for verbs, appliances in needed:
        if action.verb in verbs:
            for tool in place.open(TOOL):
                if tool.main & appliances:
                    return [tool]
    return []


def addition(action: Action, found: Sequence[Use], place: Workplace) -> list[Product]:
    """What is added goes to the work at hand, unless it is said where it goes.

    "Whisk the eggs. **Add** the milk."; "Peg down the tent. **Put** the bags **inside**."
    """
    adds = action.verb in lexicon.ADDING or action.particle in ("in", "inside")
    if not adds or not action.ordered or place.fresh or _says_where(action, found):
        return []
    added = [use.product for use in found if use.mention is not None and use.mention.role == SIMPLE_OBJECT]
    current = _current(action, place)
    if current in added and (action.verb == "add" or action.particle == "in"):
        others = (product for product in place.open(MATERIAL, HEAT) if product not in added and not product.aside)
        current = next(others, current)
    return [current] if current is not None else []


def _says_where(action: Action, found: Sequence[Use]) -> bool:
    for use in found:
        mention = use.mention
        if (
            mention is not None
            and mention.role in _DESTINATIONS
            and mention.kind != "part"
            and use.product.kind != TOOL
        ):
            return True
    fills = action.verb == "fill" and any(mention.role == "with" for mention in action.mentions)
    return any(
        _is_place(mention) or (fills and mention.kind == "container" and mention.role == SIMPLE_OBJECT)
        for mention in action.mentions
    )


def _is_place(mention: Mention) -> bool:
    if mention.kind == "container":
        return bool(mention.words & {"a", "an"}) and (mention.role in _PLACES or mention.role == SIMPLE_OBJECT)
    return mention.kind == "thing" and mention.role in _PLACES and not mention.nested


def missing_object(action: Action, found: Sequence[Use], place: Workplace) -> list[Product]:
    """Without an object, the work at hand is meant.

    "Add the stock. **Simmer** for ten minutes."
    """
    if place.fresh or action.verb in ("", "preheat") or (found and action.verb in lexicon.KNOWING):
        return []
    heats = action.verb in lexicon.COOKING | lexicon.BAKING | lexicon.GRILLING
    if any(m.kind not in ("tool", "appliance") or (m.kind == "appliance" and not heats) for m in action.objects):
        return []
    if action.verb in _HEAT_LEVEL and any(use.product.kind == TOOL for use in found):
        return []
    current = _current(action, place)
    return [current] if current is not None else []


def hot_pan(action: Action, found: Sequence[Use], place: Workplace) -> list[Product]:
    """Cooking uses what was heated for it.

    "**Heat the oil**. Chop the onions. **Fry** the onions."
    """
    if action.verb not in lexicon.COOKING or place.fresh:
        return []
    if any(m.kind == "container" and m.role in _DESTINATIONS and m.words & {"a", "an"} for m in action.mentions):
        return []
    heat = place.latest(HEAT)
    return [heat] if heat is not None else []


def finish(action: Action, found: Sequence[Use], place: Workplace) -> list[Product]:
    """Serving takes what has been made, and in the last instruction all of it; so does tidying up.

    "Grill the fish. Whisk the oil with the lemon juice. **Serve**."
    """
    if action.verb in lexicon.TIDYING and any(mention.head in lexicon.SUPPLIES for mention in action.objects):
        return list(place.products)
    if action.verb not in lexicon.SERVING or not action.ordered:
        return []
    if place.last:
        return list(place.open(MATERIAL))
    latest = place.latest(MATERIAL)
    return [latest] if latest is not None else []


def supplies(action: Action, found: Sequence[Use], place: Workplace) -> list[Product]:
    """What begins anew needs what was got together.

    "**Gather your tools**. Loosen the lug nuts."
    """
    return [place.supplies] if place.supplies is not None and not found else []


def _current(action: Action, place: Workplace) -> Product | None:
    """Return the work at hand; a tool just made ready if the action goes on with that ("Grease the tin. Dust it …")."""
    last = place.products[-1] if place.products else None
    goes_on = action.verb in lexicon.PREPARING or action.verb in ("sprinkle", "shake")
    if last is not None and last.kind == TOOL and goes_on and not last.main & lexicon.APPLIANCES:
        return last
    return place.latest(MATERIAL, HEAT)


IMPLIED: dict[str, Rule] = {
    "everything": everything,
    "oven": oven,
    "addition": addition,
    "missing object": missing_object,
    "hot pan": hot_pan,
    "finish": finish,
    "supplies": supplies,
}
"""The rules in the order in which they are applied; all that they find counts."""

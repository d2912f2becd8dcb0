"""Rules that find what an action uses without naming it.

Each rule takes an action, what has been found for it so far and the workplace, and returns further products used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TypeAlias

from graph2vid.text import lexicon
from graph2vid.text.rules.clauses import Action, Mention, Product, Use, Workplace

Products: TypeAlias = Sequence[Product | None]
Rule: TypeAlias = Callable[[Action, Sequence[Use], Workplace], Products]

_DESTINATIONS = lexicon.words("to into in over onto on around between under inside through with among")
_PLACES = lexicon.words("to into in over onto on")
_HEAT_LEVEL = lexicon.words("turn lower reduce raise increase")
_GRILLS = lexicon.words("grill barbecue bbq broiler")


def everything(action: Action, found: Sequence[Use], place: Workplace) -> Products:
    """ "Everything" joins all that is open, "both sauces" the two made last.

    "Chop the tomatoes. Slice the cucumber. Toss **everything** together."
    """
    for mention in action.mentions:
        if "both" in mention.words and mention.head in lexicon.MIXTURES - {"ingredient"} | lexicon.RESULTS:
            return list(islice(place.open("material"), 2))
        all_ingredients = mention.head == "ingredient" and mention.words & {"all", "both"}
        if (all_ingredients or mention.head in ("everything", "all")) and mention.role != "condition":
            return list(place.open("material", "heat"))
    return []


def oven(action: Action, found: Sequence[Use], place: Workplace) -> Products:
    """Baking needs the oven that was heated, grilling the grill.

    "**Preheat the oven**. Mix the flour and the eggs. **Bake** for an hour."
    """
    for verbs, appliances in (lexicon.BAKING, {"oven"}), (lexicon.GRILLING, _GRILLS):
        ready = [tool for tool in place.open("tool") if action.verb in verbs and tool.main & appliances]
        if ready:
            return ready[:1]
    return []


def addition(action: Action, found: Sequence[Use], place: Workplace) -> Products:
    """What is added goes to the work at hand, unless it is said where it goes.

    "Whisk the eggs. **Add** the milk."; "Peg down the tent. **Put** the bags **inside**."
    """
    adds = action.verb in lexicon.ADDING or action.particle in ("in", "inside")
    if not adds or not action.ordered or place.fresh or _says_where(action, found):
        return []
    added = [use.product for use in found if use.mention is not None and use.mention.role == "object"]
    current = _current(action, place)
    if current in added and (action.verb == "add" or action.particle == "in"):
        others = (product for product in place.open("material", "heat") if product not in added and not product.aside)
        current = next(others, current)
    return [current]


def _says_where(action: Action, found: Sequence[Use]) -> bool:
    meant = [use.mention for use in found if use.mention is not None and use.product.kind != "tool"]
    if any(mention.role in _DESTINATIONS and mention.kind != "part" for mention in meant):
        return True
    fills = action.verb == "fill" and any(mention.role == "with" for mention in action.mentions)
    return any(_is_place(mention, fills) for mention in action.mentions)


def _is_place(mention: Mention, filled: bool) -> bool:
    if mention.kind == "container" and mention.role == "object":
        return filled or mention.indefinite
    if mention.role not in _PLACES:
        return False
    return mention.indefinite if mention.kind == "container" else mention.kind == "thing" and not mention.nested


def missing_object(action: Action, found: Sequence[Use], place: Workplace) -> Products:
    """Without an object, the work at hand is meant.

    "Add the stock. **Simmer** for ten minutes."
    """
    if place.fresh or action.verb in ("", "preheat") or (found and action.verb in lexicon.KNOWING):
        return []
    heats = action.verb in lexicon.COOKING | lexicon.BAKING | lexicon.GRILLING
    if any(m.kind not in ("tool", "appliance") or (m.kind == "appliance" and not heats) for m in action.objects):
        return []
    if action.verb in _HEAT_LEVEL and any(use.product.kind == "tool" for use in found):
        return []
    return [_current(action, place)]


def hot_pan(action: Action, found: Sequence[Use], place: Workplace) -> Products:
    """Cooking uses what was heated for it.

    "**Heat the oil**. Chop the onions. **Fry** the onions."
    """
    if action.verb not in lexicon.COOKING or place.fresh:
        return []
    new_pan = any(m.kind == "container" and m.role in _DESTINATIONS and m.indefinite for m in action.mentions)
    return [place.latest("heat")] if not new_pan else []


def finish(action: Action, found: Sequence[Use], place: Workplace) -> Products:
    """Serving takes what has been made, and in the last instruction all of it; so does tidying up.

    "Grill the fish. Whisk the oil with the lemon juice. **Serve**."
    """
    if action.verb in lexicon.TIDYING and action.names_supplies:
        return list(place.products)
    if action.verb not in lexicon.SERVING or not action.ordered:
        return []
    return list(place.open("material")) if place.last else [place.latest("material")]


def supplies(action: Action, found: Sequence[Use], place: Workplace) -> Products:
    """What begins anew needs what was got together.

    "**Gather your tools**. Loosen the lug nuts."
    """
    return [place.supplies] if not found else []


def _current(action: Action, place: Workplace) -> Product | None:
    """Return the work at hand; a tool just made ready if the action goes on with that ("Grease the tin. Dust it …")."""
    goes_on = action.verb in lexicon.PREPARING or action.verb in ("sprinkle", "shake")
    ready = [tool for tool in place.products[-1:] if tool.kind == "tool" and not tool.main & lexicon.APPLIANCES]
    return ready[0] if goes_on and ready else place.latest("material", "heat")


_IN_ORDER = (everything, oven, addition, missing_object, hot_pan, finish, supplies)
IMPLIED: dict[str, Rule] = {rule.__name__.replace("_", " "): rule for rule in _IN_ORDER}
"""The rules by name, in the order in which they are applied; all that they find counts."""

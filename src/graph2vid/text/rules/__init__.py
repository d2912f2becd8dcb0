"""The rules parser: a dependency parse, and small named rules that connect actions by what they use and make."""

from __future__ import annotations

import re

from graph2vid.text.coarsen import coarsen, reason
from graph2vid.text.parsed_text import Parse, Procedure
from graph2vid.text.rules.analysis import analyse
from graph2vid.text.rules.connect import Follower, entity_graph
from graph2vid.text.rules.dependency_parser import language_model, spare_imports

__all__ = ["parse_by_rules", "spare_imports"]

_LETTERS = re.compile(r"[^\W\d_]+")


def parse_by_rules(procedure: Procedure, *, model: str | None = None) -> Parse:
    """Find the flow graph of a procedure by rules over a dependency parse.

    Each sentence is read as one or more actions with the things they act on, with, in and into. The actions are then
    followed in order: each uses products of earlier ones, found by named rules (the same noun, "the mixture", a
    pronoun, a missing object, "in the bowl", …), and makes a product that later ones may use.

    Parameters
    ----------
    procedure : Procedure
        In English; in other languages hardly a link is found.
    model : str, optional
        The name or path of a spaCy model with a tagger and a parser; by default an installed English one.

    Returns
    -------
    Parse
        With the rule and the words behind every edge, and the entity graph.

    Raises
    ------
    MissingDependencyError
        spaCy or an English model is not installed.
    InputError
        ``model`` cannot be used.
    """
    follower = Follower([instruction.section for instruction in procedure.instructions], _bought(procedure))
    for sentence in analyse(language_model(model), procedure.texts):
        follower.follow(sentence)
    reasons = []
    for maker, user, use in follower.links:
        (before, action), (after, _) = follower.actions[maker], follower.actions[user]
        if before != after:
            reasons.append(reason(before, after, use.rule, action.text, use.words))
    return coarsen(procedure, reasons, "rules", entity_graph(follower.actions, follower.links))


def _bought(procedure: Procedure) -> frozenset[str]:
    """Return the words of the list of ingredients, plurals cut to singulars as well."""
    words = {word for line in procedure.ingredients for word in _LETTERS.findall(line.lower())}
    return frozenset(words | {word.removesuffix("s") for word in words})

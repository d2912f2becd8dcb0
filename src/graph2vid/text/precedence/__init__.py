"""What must come before what, from the words, the learned parser and the written order together; the parser ``auto``.

Each pair of steps gets a calibrated probability that the first must come before the second; a pair becomes a soft edge
of the graph unless it is improbable: the surer it is and the nearer the steps are written, the more it costs to show
them the other way round. Nothing is certain: a parser only guesses.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from graph2vid._one_thread import one_thread
from graph2vid.flow import as_written
from graph2vid.text.coarsen import coarsen
from graph2vid.text.parsed_text import Parse, Procedure, Reason
from graph2vid.text.precedence.order_network import FARTHEST as FARTHEST
from graph2vid.text.precedence.order_network import FEATURES as FEATURES
from graph2vid.text.precedence.order_network import FOLDS as FOLDS
from graph2vid.text.precedence.order_network import LAYERS as LAYERS
from graph2vid.text.precedence.order_network import PLAIN as PLAIN
from graph2vid.text.precedence.order_network import OrderNetwork as OrderNetwork
from graph2vid.text.precedence.order_network import fold_of as fold_of
from graph2vid.text.precedence.order_network import inputs as inputs
from graph2vid.text.precedence.step_pairs import StepPairs as StepPairs
from graph2vid.text.precedence.step_pairs import closed as closed
from graph2vid.text.precedence.step_pairs import step_pairs as step_pairs

LEAST = 0.4
"""A pair is kept from this probability on: where an F1 of about 0.8 can be reached, half of that gives the highest."""


WRITTEN = "written order"
MOST_STEPS = 80
"""A longer procedure is read in parts of so many steps; between parts the written order holds."""


@one_thread()
def parse_by_pairs(procedure: Procedure, *, fold: int | None = None) -> Parse:
    """Find the flow graph of a procedure from the probability of every precedence.

    Parameters
    ----------
    procedure : Procedure
        In English.
    fold : int, optional
        Ask only the networks trained without this fold (:func:`fold_of`): to evaluate on texts of the training sets.

    Returns
    -------
    Parse
        With the probability of each precedence, and the entity graph of the learned parser. Probable pairs are soft
        edges, improbable ones nothing. The reason for an edge is what the learned parser found, or else the written
        order.
    """
    network = OrderNetwork.load()
    n = len(procedure)
    probability = np.zeros((n, n), dtype=np.float32)
    reasons: list[Reason] = []
    entities = None
    for first, part in _parts(procedure):
        seen = step_pairs(part)
        size = len(part)
        here = slice(first, first + size)
        none = np.zeros((size, size), dtype=bool)
        probability[here, here] = network.probabilities(network.logits(seen, fold), "auto", none)
        probability[:first, here] = 1
        for reason in seen.observed.forward:
            reasons.append(Reason(reason.before + first, reason.after + first, reason.rule, reason.words))
        entities = seen.observed.graph if size == n else None
    kept = closed(probability >= LEAST)
    found = [reason for reason in reasons if kept[reason.before, reason.after]]
    chances = probability.tolist()
    written = [Reason(i, j, WRITTEN, f"{chances[i][j]:.0%}") for i, j in np.argwhere(kept).tolist()]
    parse = coarsen(procedure, [*found, *written], "auto", entities)
    flow = as_written(parse.flow, probability)
    explained = {(reason.before, reason.after) for reason in parse.reasons if reason.rule != WRITTEN}
    needed = set(parse.flow.edges) - explained
    why = tuple(reason for reason in parse.reasons if reason.rule != WRITTEN or (reason.before, reason.after) in needed)
    return Parse(procedure, flow, "auto", why, parse.backward, entities, probability)


@one_thread()
def probabilities(parse: Parse) -> npt.NDArray[np.float32]:
    """Return the probability that each step must come before each later one, given what a parser found, [n, n]."""
    if parse.probabilities is not None:
        return parse.probabilities
    network = OrderNetwork.load()
    n = len(parse.procedure)
    has = np.zeros((n, n), dtype=bool)
    for before, after in parse.flow.edges:
        has[before, after] = True
    has = closed(has)
    found = np.triu(np.ones((n, n), dtype=np.float32), 1)
    for first, part in _parts(parse.procedure):
        here = slice(first, first + len(part))
        found[here, here] = network.probabilities(network.logits(step_pairs(part)), parse.parser, has[here, here])
    return found


def _parts(procedure: Procedure) -> Iterator[tuple[int, Procedure]]:
    if len(procedure) <= MOST_STEPS:
        yield 0, procedure
        return
    for first in range(0, len(procedure), MOST_STEPS):
        yield (
            first,
            Procedure(procedure.instructions[first : first + MOST_STEPS], procedure.title, procedure.ingredients),
        )

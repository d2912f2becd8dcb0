"""The tagger and the edge parser, evaluated on hand-made mistakes on a made-up corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph2vid.datasets.recipe_flowgraph import Recipe, read_recipes
from graph2vid.evaluate.counts import Counts, total
from graph2vid.evaluate.parser.entity_scores import EdgeScores, entities, score_entities
from recipes import corpus


@pytest.fixture
def recipes(tmp_path: Path) -> tuple[Recipe, ...]:
    return read_recipes(corpus(tmp_path), "dev")


class Oracle:
    """Knows the corpus by heart, but for the given mistakes."""

    def __init__(
        self,
        recipes: tuple[Recipe, ...],
        tags: dict[int, str] | None = None,
        edges: dict[int, tuple[int, int, str] | None] | None = None,
    ) -> None:
        self.known = {recipe.tokens: recipe for recipe in recipes}
        self.tags = tags or {}
        self.changed = edges or {}

    def tag(self, recipes: list[list[str]]) -> list[list[str]]:
        """Change tags of the first recipe."""
        found = [list(self.known[tuple(tokens)].tags) for tokens in recipes]
        for token, tag in self.tags.items():
            found[0][token] = tag
        return found

    def edges(self, tokens: list[str], tags: list[str]) -> list[tuple[int, int, str]]:
        """Change edges of the first recipe, by their number; None: left out."""
        recipe = self.known[tuple(tokens)]
        changed = self.changed if recipe is next(iter(self.known.values())) else {}
        edges = [changed.get(at, edge) for at, edge in enumerate(recipe.edges)]
        return [edge for edge in edges if edge is not None and "O" not in (tags[edge[0]], tags[edge[1]])]


def test_entities_of_tags() -> None:
    tags = ["B-F", "I-F", "O", "I-T", "I-T", "B-T", "I-F", "B-Ac", "B-Ac"]
    spans = [(0, 2, "F"), (3, 5, "T"), (5, 6, "T"), (6, 7, "F"), (7, 8, "Ac"), (8, 9, "Ac")]
    assert entities(tags) == spans


def test_a_perfect_model(recipes: tuple[Recipe, ...]) -> None:
    figures = score_entities(Oracle(recipes), recipes)
    assert figures.tagger.to_json()["f1"] == 1
    for edges in (figures.gold_tags, figures.predicted_tags):
        document = edges.to_json()
        assert (document["f1"], document["unlabelled"]["f1"], document["uas"], document["las"]) == (1, 1, 1, 1)
        assert document["tokens"] == 18
        assert document["gold"] == 7 + 2


def test_wrong_tags_by_hand(recipes: tuple[Recipe, ...]) -> None:
    # of the seven entities of the first recipe "rice" gets the wrong class, "well" is missed, "(" is one too many
    model = Oracle(recipes, tags={1: "B-T", 9: "O", 8: "B-F"})
    figures = score_entities(model, recipes)
    n = 7  # Boil, rice, Cut, leeks, Mix, them, well
    assert figures.tagger.overall == [Counts(n - 2, n, n), Counts(3, 3, 3)]
    assert figures.tagger.classes["F"] == Counts(2, 3, 3)
    assert figures.tagger.classes["T"] == Counts(1, 2, 1)
    assert figures.tagger.classes["Sf"] == Counts(0, 0, 1)
    assert figures.tagger.classes["Ac"] == Counts(5, 5, 5)
    # the class of an entity is no part of its edges: only that of "well" is lost
    assert total(figures.predicted_tags.labelled) == Counts(8, 8, 9)
    assert total(figures.gold_tags.labelled) == Counts(9, 9, 9)


def test_wrong_spans_lose_their_edges(recipes: tuple[Recipe, ...]) -> None:
    model = Oracle(recipes, tags={8: "I-F"})  # "them (" for "them"
    predicted = score_entities(model, recipes).predicted_tags
    # three edges of the first recipe touch "them": boil f-eq, cut f-part-of, and its own t
    assert predicted.labelled[0] == Counts(4, 7, 7)
    assert predicted.unlabelled[0] == Counts(4, 7, 7)
    assert predicted.labelled[1] == Counts(2, 2, 2)
    assert predicted.coreference[0] == Counts(0, 0, 1)  # "them (" is no pronoun
    assert predicted.to_json()["uas"] == 1  # heads are told by their first tokens


def test_wrong_edges_by_hand(recipes: tuple[Recipe, ...]) -> None:
    model = Oracle(
        recipes,
        edges={
            0: (0, 7, "t"),  # boil → them: the wrong label, so that co-reference is missed
            2: (3, 0, "t"),  # cut → boil, not mix: the wrong head, both actions
            3: None,  # cut → them: missed
        },
    )
    figures = score_entities(model, recipes).gold_tags
    assert figures.labelled[0] == Counts(4, 6, 7)
    assert figures.unlabelled[0] == Counts(5, 6, 7)
    assert figures.coreference[0] == Counts(0, 0, 1)
    assert figures.ellipsis[0] == Counts(0, 1, 1)
    assert figures.labels["t"] == Counts(3 + 1, 5 + 1, 4 + 1)
    assert figures.labels["f-part-of"] == Counts(0, 0, 1)
    document = figures.to_json()
    assert document["uas"] == pytest.approx(17 / 18)  # the head of "Cut"
    assert document["las"] == pytest.approx(16 / 18)  # and the label of "Boil"


def test_only_the_primary_head_is_an_attachment(recipes: tuple[Recipe, ...]) -> None:
    leeks = recipes[0]
    figures = EdgeScores()
    swapped = [edge for edge in leeks.edges if edge[0] != 3] + [(3, 7, "f-part-of"), (3, 6, "t")]
    figures.add(leeks, leeks.tags, swapped)
    assert figures.labelled[0].f1 == 1
    assert (figures.attached, figures.labelled_attached, figures.tokens) == (11, 11, 12)

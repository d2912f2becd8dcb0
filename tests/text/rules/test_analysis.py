"""Carrier sentences, and what is read out of a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph2vid.sample.narrated import NarratedFiles
from graph2vid.text import read_procedure
from graph2vid.text.rules import dependency_parser as models
from graph2vid.text.rules.analysis import analyse
from graph2vid.text.rules.carrier import LONGEST_PIECE, MOST_PIECES, WORDS, pieces
from graph2vid.text.rules.clauses import Sentence
from graph2vid.text.rules.dependency_parser import language_model

PROCEDURES = Path(__file__).parents[3] / "examples" / "procedures"
GALLERY = sorted(path for path in PROCEDURES.iterdir() if path.name != "expected.json")


def read(text: str) -> Sentence:
    (sentence,) = analyse(language_model(), [text])
    return sentence


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("Whisk the eggs.", "whisk the eggs."),
        ("In a large, deep pan, melt the butter.", "melt the butter."),
        ("In a pot melt the butter.", "melt the butter."),
        ("Meanwhile, gently heat the milk.", "gently heat the milk."),
        ("Once cool, slice the cake.", "slice the cake."),
        ("Using a fork, beat the eggs.", "beat the eggs."),
        ("To make the sauce, in a small pan, heat the cream.", "heat the cream."),
        ("For the icing: In a bowl, mix the sugar with water.", "mix the sugar with water."),
    ],
)
def test_the_carrier_stands_before_the_order(text: str, order: str) -> None:
    (piece,) = pieces(0, text)
    assert piece.text.endswith(WORDS + order)
    at = piece.text.index(WORDS) + len(WORDS)
    assert text[piece.place(at) :].lower() == order


def test_sentences_and_semicolons_are_split_and_abbreviations_are_not() -> None:
    texts = [piece.text for piece in pieces(3, "Add approx. two cups of water; stir. Leave for 5 min. and drain!")]
    assert [text.removeprefix(WORDS) for text in texts] == [
        "add approx. two cups of water",
        "stir.",
        "leave for 5 min. and drain!",
    ]


@given(st.text(max_size=300))
def test_pieces_stand_where_they_say(text: str) -> None:
    for piece in pieces(0, text):
        assert 0 <= piece.start < len(text)
        for at in range(len(piece.text)):
            if not piece.is_carrier(at):
                assert 0 <= piece.place(at) < len(text)


def test_enormous_lines_are_bounded() -> None:
    found = pieces(0, "stir the soup and " * 100_000)
    assert len(found) == MOST_PIECES
    assert max(len(piece.text) for piece in found) <= LONGEST_PIECE + len(WORDS)


def test_coordinated_verbs_and_objects() -> None:
    sentence = read("Peel and chop the carrots and the onion, then fry them in the pan with a wooden spoon.")
    assert [action.verb for action in sentence.actions] == ["peel", "chop", "fry"]
    assert [mention.head for mention in sentence.actions[0].objects] == ["carrot", "onion"]
    fry = sentence.actions[2]
    assert [(m.head, m.role, m.kind) for m in fry.mentions] == [
        ("them", "object", "pronoun"),
        ("pan", "in", "container"),
        ("spoon", "with", "tool"),
    ]


def test_stirring_in_and_partitives() -> None:
    (action,) = read("Stir in half of the grated cheese.").actions
    assert (action.verb, action.particle) == ("stir", "in")
    assert [(m.head, m.role) for m in action.mentions] == [("cheese", "object")]


def test_conditions_results_and_remarks() -> None:
    (action,) = read("Simmer until the sauce is thick.").actions
    assert [(m.head, m.role) for m in action.mentions] == [("sauce", "condition")]
    (action,) = read("Mix the flour with water to make a paste.").actions
    assert [(m.head, m.role) for m in action.mentions][-1] == ("paste", "result")
    assert not read("The cookies should be soft.").actions[0].ordered
    assert read("Do not stir the rice.").actions[0].negated


def test_a_model_of_which_less_is_loaded_reads_the_same() -> None:
    texts = [
        "Meanwhile, whisk 2 eggs, the crème fraîche and a quincunx of mizzenmasts in a bowl; don't stop.",
        "It's best left overnight, or until the mixture's set.",
        "Prep the veg; prep, det and X have numbers of spaCy's own.",
        *read_procedure(NarratedFiles().text).texts,
        *(text for name in GALLERY for text in read_procedure(name).texts),
    ]
    light, whole = language_model(), language_model(models._find())
    assert len(light.vocab.strings) < len(whole.vocab.strings) / 10
    assert analyse(light, texts) == analyse(whole, texts)
    light.tokenizer("\n".join(light.tokenizer.waiting))
    assert light.tokenizer.to_bytes(exclude=["vocab"]) == whole.tokenizer.to_bytes(exclude=["vocab"])
    for text in texts:
        ours, theirs = light(text), whole(text)
        assert [(t.text, t.tag_, t.dep_, t.lemma_, t.head.i, t.norm_) for t in ours] == [
            (t.text, t.tag_, t.dep_, t.lemma_, t.head.i, t.norm_) for t in theirs
        ]


@pytest.fixture(scope="module")
def whole() -> Any:
    """The model as spaCy reads it."""
    return language_model(models._find())


@given(st.data())
def test_words_with_rules_of_their_own_are_split_as_by_spacy(whole: Any, data: st.DataObject) -> None:
    """They are told to the tokenizer when they occur, also within others and across spaces."""
    words = st.sampled_from(sorted(whole.tokenizer.rules)) | st.text("aI'’.:-() t\n", max_size=4)
    text = "".join(data.draw(st.lists(words | st.just(" "), max_size=6)))
    found, expected = (
        [(one.text, one.idx, one.norm_) for one in tokenizer(text)]
        for tokenizer in (language_model().tokenizer, whole.tokenizer)
    )
    assert found == expected

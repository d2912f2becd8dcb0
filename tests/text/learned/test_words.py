"""Words, pieces of words, and features of pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph2vid.text.learned.pairs import SIZES, pair_features
from graph2vid.text.learned.words import (
    CLASSES,
    MOST_PIECES,
    TAGS,
    Pieces,
    Span,
    sentence_numbers,
    spans_of,
    stem,
    tidy,
    words_of,
)
from tiny_parser import VOCABULARY


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Preheat oven to 180C/Gas 4.", ["Preheat", "oven", "to", "180C", "/", "Gas", "4", "."]),
        ("Add 1/2 cup (120ml) milk", ["Add", "1/2", "cup", "(", "120ml", ")", "milk"]),
        ("a 20x10cm tin, medium-high; don't", ["a", "20x10cm", "tin", ",", "medium-high", ";", "don't"]),
        ("350°F for 2-3 min", ["350°F", "for", "2-3", "min"]),
        ("", []),
        ("土豆", ["土豆"]),
    ],
)
def test_texts_are_cut_into_words(text: str, expected: list[str]) -> None:
    words = words_of(text)
    assert [word.text for word in words] == expected
    assert all(text[word.start : word.end] == word.text for word in words)


@given(st.text(max_size=200))
def test_words_lose_nothing_but_space(text: str) -> None:
    assert "".join(word.text for word in words_of(text)) == "".join(
        sign for sign in text if sign in "".join(word.text for word in words_of(text)) and not sign.isspace()
    )


def test_words_are_tidied_for_the_vocabulary() -> None:
    assert tidy("Purée") == "puree"
    assert tidy("Purée".encode().decode("latin-1")) == "puree"
    assert tidy("Purée".encode().decode("latin-1").encode().decode("latin-1")) == "puree"


@pytest.mark.parametrize(
    ("one", "other"),
    [("tomatoes", "tomato"), ("Mashed", "mash"), ("slicing", "slice"), ("chopped", "chop"), ("berries", "berry")],
)
def test_forms_of_a_word_have_one_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


def test_the_longest_pieces_are_taken_first() -> None:
    pieces = Pieces(VOCABULARY)
    cut = [VOCABULARY[number] for number in pieces.of("Flours")]
    assert cut == ["flour", "##s"]
    assert pieces.of("mix") == (VOCABULARY.index("mix"),)
    assert pieces.of("土") == (pieces.unknown,)


@given(st.text(max_size=400))
def test_every_word_has_some_pieces(word: str) -> None:
    pieces = Pieces(VOCABULARY)
    numbers = pieces.of(word)
    assert 1 <= len(numbers) <= MOST_PIECES
    assert all(0 <= number < len(VOCABULARY) for number in numbers)


def test_tags_and_spans() -> None:
    assert spans_of(["B-Ac", "I-Ac", "O", "I-F", "B-F", "I-T"]) == [
        Span(0, 2, "Ac"), Span(3, 4, "F"), Span(4, 5, "F"), Span(5, 6, "T"),
    ]  # fmt: skip
    assert sentence_numbers(["a", ".", "b", "!", "c"]) == [0, 0, 1, 1, 2]
    assert len(TAGS) == 2 * len(CLASSES) + 1


def test_features_see_where_a_food_was_last_mentioned() -> None:
    words = ["Beat", "egg", ".", "Sift", "flour", ".", "Stir", "egg", "mixture", "."]
    tags = ["B-Ac", "B-F", "O", "B-Ac", "B-F", "O", "B-Ac", "B-F", "I-F", "O"]
    spans = spans_of(tags)
    features = pair_features(words, sentence_numbers(words), spans)
    beat, sift, stir, mixture = 0, 2, 4, 5
    assert features[beat, mixture, 5] == 2  # a word of it, and nowhere later
    assert features[sift, mixture, 5] == 0
    assert features[sift, stir, 5] == 5  # nothing like it before
    assert features[beat, mixture, 1] - features[sift, mixture, 1] == 1


@given(st.lists(st.tuples(st.sampled_from(["egg", "eggs", "mix", ".", "in", ","]), st.sampled_from(TAGS)), max_size=30))
def test_features_are_in_their_ranges(tagged: list[tuple[str, str]]) -> None:
    words, tags = [word for word, _ in tagged], [tag for _, tag in tagged]
    spans = spans_of(tags)
    features = pair_features(words, sentence_numbers(words), spans)
    assert features.shape == (len(spans), len(spans), len(SIZES))
    assert (features >= 0).all()
    assert (features < np.array(SIZES)).all()

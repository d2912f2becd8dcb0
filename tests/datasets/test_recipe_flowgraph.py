"""The recipe flow graph corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph2vid.datasets.recipe_flowgraph import read_recipes, sentences_of
from graph2vid.errors import FormatError
from layouts import real_data, write
from recipes import LEEKS, PAN, corpus, parser_file, tagger_file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return corpus(tmp_path)


def test_reads_everything(root: Path) -> None:
    leeks, pan = read_recipes(root, "dev")
    assert (leeks.id, pan.id) == ("dev 1", "dev 2")
    assert leeks.tokens[:4] == ("Boil", "rice", ".", "Cut")
    assert pan.tags == ("B-Ac", "O", "B-T", "I-T", "O", "B-Ac")
    assert leeks.edges == (
        (0, 7, "f-eq"),
        (1, 0, "t"),
        (3, 6, "t"),
        (3, 7, "f-part-of"),
        (4, 3, "t"),
        (7, 6, "t"),
        (9, 6, "v-tm"),
    )
    assert leeks.sentences == ((0, 3), (3, 6), (6, 12))
    assert pan.sentences == ((0, 5), (5, 6))


def test_sentences_end_at_full_stops() -> None:
    assert sentences_of(("Stir", "!", "Why", "?", ".", "Go", "on")) == ((0, 2), (2, 4), (4, 5), (5, 7))
    assert sentences_of(("Stir", ".")) == ((0, 2),)


def test_further_heads_in_every_spelling(root: Path) -> None:
    rows = list(LEEKS)
    rows[3] = ("Cut", "B-Ac", 7, "t", """[(8,'f-part-of'), (7, "t"), ( 1 , 'a')]""")
    write(root / "Parser" / "dev.conllu", "# made up\n" + parser_file(rows, PAN).replace("\n", "\r\n"))
    edges = read_recipes(root, "dev")[0].edges
    assert [edge for edge in edges if edge[0] == 3] == [(3, 6, "t"), (3, 7, "f-part-of"), (3, 0, "a")]


def test_the_tagger_file_is_compared_where_it_aligns(root: Path) -> None:
    (root / "Tagger" / "dev.conll03").unlink()
    assert len(read_recipes(root, "dev")) == 2
    other_tokens = tagger_file(LEEKS, PAN).replace("large\tXX\tO\tB-T", "huge\tXX\tO\tO")
    write(root / "Tagger" / "dev.conll03", other_tokens)
    assert len(read_recipes(root, "dev")) == 2
    write(root / "Tagger" / "dev.conll03", tagger_file(LEEKS, PAN).replace("pan\tXX\tO\tI-T", "pan\tXX\tO\tO"))
    with pytest.raises(FormatError, match=r"dev\.conll03, line 17: tag 'O', but 'I-T' in the parser's file"):
        read_recipes(root, "dev")
    write(root / "Tagger" / "dev.conll03", tagger_file(LEEKS))
    with pytest.raises(FormatError, match="holds 1 recipes, the parser's file of the same split 2"):
        read_recipes(root, "dev")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2\trice\t_\tXX", "2\trice\tXX", "line 2: 9 columns where there should be 10"),
        ("2\trice", "3\trice", "line 2: token number '3' where 2 should stand"),
        ("rice\t_\tXX\tB-F", "rice\t_\tXX\tB-Food", "line 2: 'B-Food' is no tag"),
        ("rice\t_\tXX\tB-F\t_\t1", "rice\t_\tXX\tB-F\t_\tone", "line 2: the head must be a token number or 0"),
        ("rice\t_\tXX\tB-F\t_\t1", "rice\t_\tXX\tB-F\t_\t13", "line 2: head 13 of 'rice' is no token.* has 12"),
        ("[(8, 'f-part-of')]", "[(80, 'f-part-of')]", "line 4: head 80"),
        ("[(8, 'f-part-of')]", "[(8, 'f-part-of'), x]", "line 4: further heads are _ or"),
        ("[(8, 'f-part-of')]", "__import__('os')", "line 4: further heads are _ or"),
        ("[(8, 'f-part-of')]", "", "line 4: further heads are _ or"),
    ],
)
def test_malformed_rows_are_named(root: Path, old: str, new: str, message: str) -> None:
    path = root / "Parser" / "dev.conllu"
    text = path.read_text()
    assert old in text
    write(path, text.replace(old, new, 1))
    with pytest.raises(FormatError, match=message) as caught:
        read_recipes(root, "dev")
    assert "dev.conllu" in str(caught.value)


def test_what_is_not_there(root: Path, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"test\.conllu is not there; splits in that folder: dev"):
        read_recipes(root, "test")
    with pytest.raises(FormatError, match="is not a folder"):
        read_recipes(tmp_path / "nowhere", "dev")
    write(root / "Parser" / "empty.conllu", "\n\n")
    with pytest.raises(FormatError, match="holds no recipe"):
        read_recipes(root, "empty")


def test_real_corpus() -> None:
    recipes = read_recipes(real_data("recipe_flowgraph") / "recipe_flowgraph", "dev")
    assert len(recipes) == 30
    assert sum(len(recipe.edges) for recipe in recipes) == 1401
    assert sum(len(recipe.sentences) for recipe in recipes) == 267
    # an edge always joins first tokens of entities
    assert all(recipe.tags[end][0] == "B" for recipe in recipes for edge in recipe.edges for end in edge[:2])

"""Reading procedures written as plain text and Markdown."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graph2vid.errors import Graph2VidError, InputError
from graph2vid.text import Procedure, procedure_from_text
from graph2vid.text.reading.sentences import sentence_spans
from graph2vid.text.reading.tidy import tidy


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    "expected",
    [
        ["Heat the oven to 350 deg. F.", "Mix approx. 1.5 cups of flour, e.g. rye.", "Rest it."],
        ["Bake 10 min.", "Remove the cake.", "Wait 2 hrs. or more.", "Slice."],
        ["Add 2 tbsp. Dijon mustard and 1 oz. cheese.", "Stir in 2tbsp. sugar.", "Taste."],
        ["Heat to 180 C.", "Use J. Smith's sauce, i.e. No. 2.", "Open a No. 10 tin."],
        ["Mix (about 2 min. Do not stop) well.", "(Do this first. It helps.)", "Bake it."],
        ["Bake it... then wait.", "Really?", "Yes!", "Go on…", "Done."],
        ["Cut it 2 in. thick.", "Put it in.", "Stir (it.", "Serve.", "Eat."],
        ['Say "stir."', "Then bake at 5 p.m.", "Eat."],
        ["Wait for the U.S. Army cook.", "Use Dr. Miller's pan."],
        ["mix flour.", "add water vs. milk.", "bake."],
        ["1. Mix flour at speed 2.", "2. Bake it.", "Step 3. Eat."],
        ["Mische das Mehl.", "Backe es ca. 30 Min. bei 180 °C.", "Öffne den Ofen."],
        ["Mélangez la farine.", "Ajoutez l'eau !", "Était-ce bon ?"],
        ["no stop at all"],
    ],
    ids=lambda expected: expected[0][:24],
)
def test_sentences(expected: list[str]) -> None:
    assert sentences(" ".join(expected)) == expected


def test_sentences_without_spaces() -> None:
    assert sentences("混ぜる。焼く！（十分。）食べる。") == ["混ぜる。", "焼く！", "（十分。）", "食べる。"]
    assert sentences("") == []


@given(st.text("aB.!?()… 1\"'[]"))
def test_sentences_lose_nothing(text: str) -> None:
    text = tidy(text)
    spans = sentence_spans(text)
    assert "".join(text[start:end] for start, end in spans).replace(" ", "") == text.replace(" ", "")
    assert [place for span in spans for place in span] == sorted(place for span in spans for place in span)


def read(text: str) -> Procedure:
    return procedure_from_text(text)


def sources(procedure: Procedure) -> list[str]:
    return [instruction.source for instruction in procedure.instructions]


def sections(procedure: Procedure) -> list[str]:
    return [instruction.section for instruction in procedure.instructions]


@pytest.mark.parametrize(
    "marks",
    [
        ("1. ", "2. ", "3. "),
        ("1) ", "2) ", "3) "),
        ("1.", "2.", "3."),
        ("(1) ", "(2) ", "(3) "),
        ("(a) ", "(b) ", "(c) "),
        ("a) ", "b) ", "c) "),
        ("i) ", "ii) ", "iii) "),
        ("Step 1: ", "Step 2: ", "Step 3: "),
        ("STEP 1 - ", "STEP 2 - ", "STEP 3 - "),
        ("Step 1\n", "Step 2\n", "Step 3\n"),
        ("Step one: ", "Step two: ", "Step three: "),
        ("- ", "- ", "- "),
        ("* ", "* ", "* "),
        ("• ", "•\t", "• "),
        ("- [ ] ", "- [x] ", "- [ ] "),
        ("- 1. ", "- 2. ", "- 3. "),
        ("> 1. ", "> 2. ", "> 3. "),
        ("### Step 1: ", "### Step 2: ", "### Step 3: "),
    ],
    ids=lambda marks: marks[0].strip(),
)
def test_items_are_one_instruction_each(marks: tuple[str, str, str]) -> None:
    texts = ("Mix flour with water. Then wait.", "Bake at 350 deg. F", "Eat.")
    text = "\n".join(mark + text for mark, text in zip(marks, texts, strict=True))
    assert read(text).texts == texts
    assert read(text.replace("\n", "\r\n")).texts == texts


def test_items_on_one_line() -> None:
    assert read("1. Mix it. 2. Bake 3. times. 3. Eat.").texts == ("Mix it.", "Bake 3. times.", "Eat.")


def test_items_go_on() -> None:
    text = "1. Mix the flour\n   with water.\n\n   Wait.\n2. Bake\nslowly\n\nServe it."
    assert read(text).texts == ("Mix the flour with water. Wait.", "Bake slowly", "Serve it.")
    assert sources(read(text)) == ["line 1", "line 5", "line 8"]


def test_nested_items() -> None:
    procedure = read("1. Make the dough:\n   a. mix\n   b. knead\n2. Rest it\n   - in the cold\n3. Bake")
    assert procedure.texts == ("mix", "knead", "Rest it", "in the cold", "Bake")
    assert sections(procedure) == ["Make the dough", "Make the dough", "", "", ""]


def test_steps_as_headings() -> None:
    procedure = read(
        "# Tyre\n\n### Step 1: Loosen\n\nUse a brace. Turn it.\n\n### Step 2: Lift\n- jack\n- lift\n\n### Step 3\nEnd."
    )
    assert procedure.title == "Tyre"
    assert procedure.texts == ("Loosen. Use a brace. Turn it.", "jack", "lift", "End.")
    assert sections(procedure) == ["", "Lift", "Lift", ""]


def test_paragraphs_are_split_into_sentences() -> None:
    procedure = read(
        "Heat the oven to 350 deg. F and mix approx. 1.5 cups of flour with some\nwater. Bake 10 min. Take it out.\n\n"
        "Serve."
    )
    assert procedure.texts[0].endswith("with some water.")
    assert procedure.texts[1:] == ("Bake 10 min.", "Take it out.", "Serve.")
    assert sources(procedure) == ["line 1", "line 2", "line 2", "line 4"]


@pytest.mark.parametrize(
    "texts",
    [
        ("mix flour", "add eggs", "bake"),
        ("Mix the flour", "Add eggs", "Bake for 10 minutes"),
        ("Mix the flour. Stir.", "Add eggs.", "Bake."),
        ("MIX", "ADD EGGS", "BAKE"),
        ("Cook 10 minutes", "Rest 5 minutes", "Serve"),
    ],
)
def test_one_instruction_per_line(texts: tuple[str, ...]) -> None:
    procedure = read("\n".join(texts))
    assert procedure.texts == texts
    assert procedure.title == ""
    assert sources(procedure) == [f"line {number}" for number in range(1, len(texts) + 1)]


def test_broken_lines_are_a_paragraph() -> None:
    text = (
        "Take the old wheel off the car and lay it flat under the\n"
        "Volvo, beside the jack. Lift the spare wheel onto the studs and\n"
        "turn the nuts by hand. Lower the car. Tighten the nuts."
    )
    assert len(read(text)) == 4
    assert "under the Volvo" in read(text).texts[0]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Pizza\n\nMix.\nBake.", "Pizza"),
        ("Pizza\n=====\nMix.\nBake.", "Pizza"),
        ("**Pizza**\n\nMix.\nBake.", "Pizza"),
        ("Title: Pizza\nMix.\nBake.", "Pizza"),
        ("Pizza\n\nMix it. Bake it.", "Pizza"),
        ("How do I change a tyre?\n\n1. Loosen\n2. Lift", "How do I change a tyre?"),
        ("Tomato Soup\nMix.\nBake.", "Tomato Soup"),
        ("Pizza\n- mix\n- bake", "Pizza"),
        ("Mix it\n\nBake it.", ""),
        ("Mix it well\nBake it.\nEat.", ""),
        ("Mix it.\n\nBake it.", ""),
        ("# Dough\n1. mix\n# Sauce\n2. cook", ""),
        ("For the dough:\n1. mix\n2. bake", ""),
        ("# Method\n1. mix\n2. bake", ""),
    ],
)
def test_titles(text: str, title: str) -> None:
    procedure = read(text)
    assert procedure.title == title
    if title:
        assert len(procedure) == 2


def test_markdown_recipe() -> None:
    procedure = read(
        "# Pizza\n\nOur favourite. It is quick.\n\nServes 4\n\n## Ingredients\n\n### For the dough\n- 2 cups *flour*\n"
        "- 1 cup\n  water\n\n### For the sauce\n- [tomatoes](http://example.org/tomato)\n\n## Method\n\n"
        "### For the dough\n\n1. **Mix** flour and water. Wait.\n2. Knead.\n\n### For the sauce\n\n"
        "1. Cook the _tomatoes_.\n\n---\n\n## Notes\n\nKeeps for 2 days.\n"
    )
    assert procedure.title == "Pizza"
    assert procedure.ingredients == ("2 cups flour", "1 cup water", "tomatoes")
    assert procedure.texts == ("Mix flour and water. Wait.", "Knead.", "Cook the tomatoes.")
    assert sections(procedure) == ["For the dough", "For the dough", "For the sauce"]


def test_plain_recipe() -> None:
    procedure = read(
        "Soup\n\nPrep time: 10 min\nIngredients (for two)\ntomatoes\nFor the topping:\ncream\n\nMethod\n\n"
        "Boil the tomatoes.\nStrain.\nFor the topping:\nWhip the cream.\n"
    )
    assert procedure.title == "Soup"
    assert procedure.ingredients == ("tomatoes", "cream")
    assert procedure.texts == ("Boil the tomatoes.", "Strain.", "Whip the cream.")
    assert sections(procedure) == ["Method", "Method", "For the topping"]


@pytest.mark.parametrize(
    "text",
    [
        "Ingredients: flour, eggs (2, large)\nMethod: Mix them. Fry 10 min. Serve.",
        "Ingredients:\n- flour\n- eggs (2, large)\n\nMix them. Fry 10 min. Serve.",
        "Ingredients:\n- flour\n- eggs (2, large)\n1. Mix them.\n2. Fry 10 min.\n3. Serve.",
        "1. Mix them.\n2. Fry 10 min.\n3. Serve.\n\nYou will need:\n- flour\n- eggs (2, large)",
        "## You’ll need\n- flour\n- eggs (2, large)\n\n## Directions\nMix them.\nFry 10 min.\nServe.",
    ],
)
def test_ingredients_are_kept_apart(text: str) -> None:
    procedure = read(text)
    assert procedure.ingredients == ("flour", "eggs (2, large)")
    assert procedure.texts == ("Mix them.", "Fry 10 min.", "Serve.")


def test_other_languages() -> None:
    procedure = read("Брашно\n\n1. Смесете брашното. Изчакайте.\n2. Печете.")
    assert (procedure.title, len(procedure)) == ("Брашно", 2)
    assert read("混ぜる。焼く。").texts == ("混ぜる。", "焼く。")
    german = read("Zutaten:\n- Mehl\n\nZubereitung:\n1. Mischen.\n2. Backen.")
    assert (german.ingredients, german.texts) == (("Mehl",), ("Mischen.", "Backen."))
    assert len(read("اخلط الدقيق. هل انتهيت؟ اخبزه.")) == 3


def test_many_and_long() -> None:
    assert len(read("Stir the pot again. " * 500)) == 500
    assert len(read("x" * 300_000)) == 1
    assert len(read("pancake")) == 1
    with pytest.raises(InputError, match="the text holds 2001 instructions, more than 2000"):
        read("Stir. " * 2001)
    with pytest.raises(InputError, match="the text: 30000 lines are no procedure"):
        read("Stir.\n" * 30_000)


@pytest.mark.parametrize("text", ["", "  \n\t", "***\n---\n", "\ufeff", "…"])
def test_nothing(text: str) -> None:
    with pytest.raises(InputError, match="the text holds no words"):
        read(text)


def test_only_ingredients() -> None:
    with pytest.raises(InputError, match=r"soup\.txt: only ingredients found; write an instruction per line"):
        procedure_from_text("Ingredients\n- flour", source="soup.txt")


def test_lone_surrogates_and_control_signs() -> None:
    assert read("Mix \ud800 it\x07 \ud83c\udf55\u200b. Bake\u00ad.").texts == ("Mix \ufffd it 🍕.", "Bake.")


PIECES = (
    "1. ",
    "- ",
    "Step 2: ",
    "# ",
    "## ",
    "\n",
    "\n\n",
    "  ",
    "Ingredients",
    "Method:",
    "For the sauce:",
    ":",
    ". ",
)
PIECES += (
    "mix",
    "Bake",
    "it",
    "350 deg. F",
    "(",
    ")",
    "**",
    "_",
    "[a](b)",
    "{",
    "<p>",
    "---\n",
    "===\n",
    "\ud800",
    "> ",
)


@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
@example("Step 1")
@example("1.")
@example("1. Mix** **")
@example("# Ingredients\n# Method")
@example("{\\rtf1 hello}")
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        procedure = read(text)
    except Graph2VidError as error:
        assert "\n" not in str(error)
        return
    for instruction in procedure.instructions:
        assert instruction.text == tidy(instruction.text)
        assert any(map(str.isalnum, instruction.text))
        instruction.text.encode("utf-8")


WORDS = st.lists(st.sampled_from(["mix", "bake", "dough", "two", "eggs", "oven", "well"]), min_size=1, max_size=6)


@given(
    st.lists(WORDS, min_size=1, max_size=20), st.sampled_from(["{n}. {t}.", "- {t}", "{t}.", "Step {n}: {t}", "{t}"])
)
def test_texts_are_kept_in_order(drawn: list[list[str]], form: str) -> None:
    texts = [f"Number{number} {' '.join(words)}" for number, words in enumerate(drawn)]
    procedure = read("\n".join(form.format(n=number, t=text) for number, text in enumerate(texts, start=1)))
    assert [text.rstrip(".") for text in procedure.texts] == texts
    paragraph = read(" ".join(f"{text}." for text in texts))
    assert [text.rstrip(".") for text in paragraph.texts] == texts

"""Each rule by its own example: the edges it makes, and its name among the reasons."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from graph2vid.text import Parse
from graph2vid.text.rules.implied import IMPLIED
from graph2vid.text.rules.references import REFERENCES

Run = Callable[..., Parse]

# The rule, a procedure (a sentence an instruction), and the edges of its graph.
CASES = [
    ("pronoun", "Knead the dough. Cover it with a cloth", [(0, 1)]),
    (
        "container",
        "Whisk the eggs in a bowl. Melt the butter in a pan. Pour the butter into the bowl",
        [(0, 2), (1, 2)],
    ),
    ("container", "Brown the beef. Soften the onions in the same pan", [(0, 1)]),
    ("mixture word", "Mix the pork with soy sauce for the filling. Put a spoonful of filling in the wrapper", [(0, 1)]),
    ("same noun", "Prise off the cover. Loosen the valve. Clean the cover", [(0, 2)]),
    ("prepared tool", "Grease a loaf tin. Mix the flour and the eggs. Pour the batter into the tin", [(0, 2), (1, 2)]),
    (
        "mixture word",
        "Beat the eggs with the milk. Fry the bacon in a pan. Pour the egg mixture over the bacon",
        [(0, 2), (1, 2)],
    ),
    ("same noun", "Boil the potatoes. Fry the onions in a pan. Add the potatoes to the pan", [(0, 2), (1, 2)]),
    ("same noun", "Loosen the lug nuts. Find the jacking point. Remove the lug nuts", [(0, 2)]),
    ("general word", "Brown the lamb. Peel the carrots. Slice the meat", [(0, 2)]),
    ("result", "Whisk the eggs, flour and sugar. Bake for an hour. Turn the cake out", [(0, 1), (1, 2)]),
    ("result", "Toast the bread. Boil the eggs. Butter the toast", [(0, 2)]),
    ("part of", "Press the pastry into a ring. Trim the edges", [(0, 1)]),
    ("excess", "Brush the fish with oil. Wipe off any drips", [(0, 1)]),
    ("excess", "Boil the jam. Skim off the scum", [(0, 1)]),
    ("renamed", "Fold the cream into the chocolate. Refrigerate the mousse for two hours", [(0, 1)]),
    ("everything", "Chop the tomatoes. Slice the cucumber. Toss everything together", [(0, 2), (1, 2)]),
    (
        "everything",
        "Simmer the tomatoes in a pot. Simmer the cream in another pot. Strain both sauces",
        [(0, 2), (1, 2)],
    ),
    ("oven", "Preheat the oven. Mix the flour and the eggs. Bake for an hour", [(0, 2), (1, 2)]),
    ("addition", "Whisk the eggs. Add the milk", [(0, 1)]),
    ("addition", "Peg down the tent. Put the bags inside", [(0, 1)]),
    ("missing object", "Whisk the eggs. Leave to rest for ten minutes", [(0, 1)]),
    ("hot pan", "Heat the oil. Fry the sausages", [(0, 1)]),
    ("finish", "Grill the fish. Whisk the oil with the lemon juice. Serve", [(0, 2), (1, 2)]),
    ("supplies", "Gather your tools. Loosen the lug nuts. Chop the wood", [(0, 1), (0, 2)]),
]


@pytest.mark.parametrize(("rule", "text", "edges"), CASES, ids=[f"{case[0]}: {case[1][:40]}" for case in CASES])
def test_rule(rule: str, text: str, edges: list[tuple[int, int]], parse: Run) -> None:
    result = parse(text)
    assert list(result.flow.edges) == edges
    assert rule in {reason.rule for reason in result.reasons}
    assert result.parser == "rules"


def test_every_rule_has_a_case() -> None:
    assert {case[0] for case in CASES} == {*REFERENCES, *IMPLIED}


@pytest.mark.parametrize("rule", [*REFERENCES.values(), *IMPLIED.values()], ids=lambda rule: rule.__name__)
def test_the_example_of_a_rule_is_true(rule: Callable[..., object], parse: Run) -> None:
    """The sentence with the last bold words of the docstring waits for an earlier one."""
    example = re.search(r'\n    "(.*?)"', rule.__doc__ or "", flags=re.DOTALL)
    assert example is not None
    assert parse(example.group(1).replace("**", "").replace(" … ", " ")).flow.edges


def test_threads(parse: Run) -> None:
    result = parse(
        "Boil the rice. Meanwhile, chop the onions. In another pan, melt the butter. For the sauce, whisk eggs"
    )
    assert result.flow.edges == ()


# What a rule must not take for something made before, beside what it does take.
EXCEPTIONS = {
    "a pronoun in a condition is what the action works on": (
        "Simmer the sauce. Heat the oven as hot as it will go. Serve the sauce",
        [(0, 2)],
    ),
    "a mixture in a condition is what the action makes": (
        "Line the tin with paper. Whip the cream. Beat the butter and the sugar until the mixture is pale",
        [],
    ),
    "a pronoun after an object is that object": ("Heat the oven. Wash the sausages, turning them often", []),
    "what something is made for is not there yet": (
        "Slice the tomatoes. Mix the mayonnaise with ketchup for the sauce. Fry the fish. Pour the sauce over the fish",
        [(1, 3), (2, 3)],
    ),
    "instructions on a packet are no food": ("Bake the buns. Meanwhile, cook the rice according to the packet", []),
    "a pot that belongs to something is not the one at hand": (
        "Put compost in the pot. Ease the plant out of its old pot",
        [],
    ),
    "what is filled is where it goes": ("Rinse off the dirt. Fill the bucket with warm water", []),
    "what is grated is prepared, not added": ("Simmer the sauce. Grate the mozzarella", []),
    "what is let do something is not the work at hand": (
        "Screw the bracket to the wall. Grease a tin and let it dry",
        [],
    ),
    "what is listed is taken from where it was made": (
        "Toss the potatoes with the oil, mustard and honey. Wash the lettuce. "
        "Arrange the potatoes, beans and tuna on the lettuce",
        [(0, 2), (1, 2)],
    ),
    "what is listed is not taken out of the work it is added to": (
        "Fry the leeks with the peppers, onions and carrots in a pan. Serve the rice. Add salt, pepper and leeks",
        [(0, 1), (1, 2)],
    ),
    "a common ingredient without an article is a new portion": (
        "Cool the eggs in water. Fry the beans. Drop the beans into iced water",
        [(1, 2)],
    ),
    "meanwhile, something is as it was before the work that goes on": (
        "Shift the chain onto the sprocket. Put the chain in a jar. Meanwhile, brush the sprocket",
        [(0, 1), (0, 2)],
    ),
}


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_exception(name: str, parse: Run) -> None:
    text, edges = EXCEPTIONS[name]
    assert list(parse(text).flow.edges) == edges


def test_a_remark_that_something_is_optional_does_not_spoil_the_reading(parse: Run) -> None:
    found = parse(["Whisk the eggs.", "(Optional) Add the milk (optional)."])
    assert (found.flow.edges, found.flow.optional) == (((0, 1),), (1,))
    assert found.entities is not None
    assert [entity.text for entity in found.entities.entities] == ["Whisk", "the eggs", "Add", "the milk"]


def test_set_aside_and_return(parse: Run) -> None:
    result = parse("Brown the lamb in a casserole. Set aside. Heat some oil in a pan. Return the meat to the pan")
    assert result.flow.edges == ((0, 1), (1, 3), (2, 3))


def test_plain_additions_are_free_among_themselves(parse: Run) -> None:
    result = parse("Warm a mug. Add the coffee. Add the whiskey. Stir well")
    assert (1, 2) not in result.flow.edges
    assert {(1, 3), (2, 3)} <= set(result.flow.edges)
    assert (1, 2) in parse("Whisk the flour and milk. Add the eggs and beat well. Add the sugar").flow.edges


def test_a_remark_does_nothing(parse: Run) -> None:
    result = parse("Knead the dough. Do not overwork the dough. Roll out the dough")
    assert result.flow.edges == ((0, 1), (0, 2))


def test_fresh_portions_are_not_the_same_thing(parse: Run) -> None:
    result = parse(
        "Mix the flour, sugar and butter. Whisk two tablespoons of sugar with the remaining butter in a bowl"
    )
    assert result.flow.edges == ()


def test_the_list_of_ingredients_and_headings_are_minded() -> None:
    from graph2vid.text import Instruction, Procedure
    from graph2vid.text.rules import parse_by_rules

    steps = (
        Instruction("Mix the flour, yeast and water.", "Dough"),
        Instruction("Add the tomatoes and simmer.", "Sauce"),
        Instruction("Spread the sauce over the dough.", "Pizza"),
    )
    assert parse_by_rules(Procedure(steps)).flow.edges == ((0, 2), (1, 2))
    bought = (Instruction("Whisk the eggs, oil and tomatoes."), Instruction("Warm the sauce in a pan."))
    assert parse_by_rules(Procedure(bought)).flow.edges == ((0, 1),)
    assert parse_by_rules(Procedure(bought, ingredients=("1 jar of sauce",))).flow.edges == ()

"""Procedures as people paste them from web pages: headings without marks, titles, boilerplate, introductions."""

from __future__ import annotations

import pytest

from graph2vid.text import Procedure, procedure_from_text
from graph2vid.text.reading.boilerplate import ends_page, is_boilerplate, is_button


def sections(procedure: Procedure) -> list[str]:
    return [instruction.section for instruction in procedure.instructions]


CURRY = """\
Jump to Recipe
Print Recipe

Easy Weeknight Chickpea Curry

By Dana Miller
Updated March 3, 2024
★★★★★ 4.8 from 212 votes

This curry is a life saver on busy nights. My kids ask for it every week!

ADVERTISEMENT

Prep Time
10 minutes
Cook Time
25 minutes
Total Time
35 minutes
Servings: 4

Ingredients
US Customary - Metric
1x 2x 3x
▢ 1 tablespoon coconut oil
▢ 1 onion, diced
▢ 2 cans chickpeas

Instructions

Heat the oil in a large pan over medium heat.
Add the onion and cook until soft, about 5 minutes.
ADVERTISEMENT
Stir in the chickpeas and simmer for 15 minutes.
Serve with rice.

Notes
Keeps for three days in the fridge.

Nutrition
Calories: 320kcal

Did you make this recipe?
Tag @danacooks on Instagram and hashtag it #danacooks!
"""

TIRE = """\
How to Change a Bicycle Tire

Co-authored by Jonas Jackel

Method 1
Removing the Wheel

1
Turn the bike upside down. Rest it on the seat and handlebars.

2
Open the brake. Squeeze the arms together and unhook the cable.

3
Loosen the axle nuts.

Method 2
Replacing the Tube

1
Let out the remaining air.

2
Pry the tire off with levers.

Tips
Carry a spare tube.

Things You'll Need
Tire levers
Pump
"""

LASAGNA = """\
Lasagna Bolognese

Make the Ragù
1. Brown the beef in a heavy pot.
2. Add the tomatoes and simmer for an hour.

Make the Béchamel
1. Melt the butter.
2. Whisk in flour and milk.

Assemble
1. Layer pasta, ragù and béchamel.
2. Bake for 40 minutes.

Tag @pastaqueen if you make it!
"""

OIL = """\
Changing the oil in your car

Part 1: Draining the Old Oil
- Warm up the engine.
- Place the pan under the plug.
- Unscrew the plug and let the oil drain.
Part 2: Adding the New Oil
- Replace the filter.
- Pour in new oil.
- Check the level.
"""

ORCHID = """\
Repotting an Orchid

Orchids need fresh bark every two years. It is easier than you think.

Preparing the Plant

Water the orchid the day before. Slide it out of its pot. Trim dead roots with clean scissors.

Potting Up

Set the orchid in the new pot. Fill in bark around the roots. Water it well.
"""

BANANA_BREAD = """\
Banana Bread

Yield: 1 loaf

Here's what you'll need:
- 3 bananas
- 2 cups flour

Step 1
Mash the bananas.

Step 2
Mix with flour.

Step 3
Bake for an hour.

Did you try this recipe? Leave a comment below!
Pin it for later
"""

CRANE = """\
Print
Paper Crane

1. Fold the square diagonally.
2. Unfold it.
3. Fold the other diagonal.

Print
Share
4.5 out of 5 (23 ratings)
"""

PANCAKES = """\
Classic Pancakes Recipe
Serves 4 | Prep 5 min

For the batter
200 g flour
2 eggs
300 ml milk

For the topping
maple syrup

Method
1. Whisk flour, eggs and milk.
2. Rest for 10 minutes.

To serve
1. Stack the pancakes.
2. Pour syrup over them.
"""

PLUG = """\
HOW TO WIRE A PLUG

TOOLS
Screwdriver
Wire stripper

STEP-BY-STEP

1. Unscrew the plug cover.
2. Strip the wires.

SAFETY CHECK
1. Tug each wire.
2. Close the cover.
"""

SOURDOUGH = """\
# Sourdough

Rating: 5/5

## What You Need
* flour
* water

## How To Make It

**Day 1**

1. Mix flour and water.
2. Rest overnight.

**Day 2**

1. Shape.
2. Bake.

*Advertisement*

## You might also like
- Focaccia
- Ciabatta
"""

GARLIC_BREAD = """\
Garlic Bread
Ready in 20 minutes

Preheat the oven to 200 C. Mix the butter with garlic. Spread it on the bread. Bake for 10 minutes.

Share on Facebook
Read 14 comments
"""

PAGES = {
    CURRY: (
        "Easy Weeknight Chickpea Curry",
        ("1 tablespoon coconut oil", "1 onion, diced", "2 cans chickpeas"),
        [
            ("Instructions", "Heat the oil in a large pan over medium heat."),
            ("Instructions", "Add the onion and cook until soft, about 5 minutes."),
            ("Instructions", "Stir in the chickpeas and simmer for 15 minutes."),
            ("Instructions", "Serve with rice."),
        ],
    ),
    TIRE: (
        "How to Change a Bicycle Tire",
        ("Tire levers", "Pump"),
        [
            ("Removing the Wheel", "Turn the bike upside down. Rest it on the seat and handlebars."),
            ("Removing the Wheel", "Open the brake. Squeeze the arms together and unhook the cable."),
            ("Removing the Wheel", "Loosen the axle nuts."),
            ("Replacing the Tube", "Let out the remaining air."),
            ("Replacing the Tube", "Pry the tire off with levers."),
        ],
    ),
    LASAGNA: (
        "Lasagna Bolognese",
        (),
        [
            ("Make the Ragù", "Brown the beef in a heavy pot."),
            ("Make the Ragù", "Add the tomatoes and simmer for an hour."),
            ("Make the Béchamel", "Melt the butter."),
            ("Make the Béchamel", "Whisk in flour and milk."),
            ("Assemble", "Layer pasta, ragù and béchamel."),
            ("Assemble", "Bake for 40 minutes."),
        ],
    ),
    OIL: (
        "Changing the oil in your car",
        (),
        [
            ("Part 1: Draining the Old Oil", "Warm up the engine."),
            ("Part 1: Draining the Old Oil", "Place the pan under the plug."),
            ("Part 1: Draining the Old Oil", "Unscrew the plug and let the oil drain."),
            ("Part 2: Adding the New Oil", "Replace the filter."),
            ("Part 2: Adding the New Oil", "Pour in new oil."),
            ("Part 2: Adding the New Oil", "Check the level."),
        ],
    ),
    ORCHID: (
        "Repotting an Orchid",
        (),
        [
            ("Preparing the Plant", "Water the orchid the day before."),
            ("Preparing the Plant", "Slide it out of its pot."),
            ("Preparing the Plant", "Trim dead roots with clean scissors."),
            ("Potting Up", "Set the orchid in the new pot."),
            ("Potting Up", "Fill in bark around the roots."),
            ("Potting Up", "Water it well."),
        ],
    ),
    BANANA_BREAD: (
        "Banana Bread",
        ("3 bananas", "2 cups flour"),
        [
            ("", "Mash the bananas."),
            ("", "Mix with flour."),
            ("", "Bake for an hour."),
        ],
    ),
    CRANE: (
        "Paper Crane",
        (),
        [
            ("", "Fold the square diagonally."),
            ("", "Unfold it."),
            ("", "Fold the other diagonal."),
        ],
    ),
    PANCAKES: (
        "Classic Pancakes Recipe",
        (),
        [
            ("Method", "Whisk flour, eggs and milk."),
            ("Method", "Rest for 10 minutes."),
            ("To serve", "Stack the pancakes."),
            ("To serve", "Pour syrup over them."),
        ],
    ),
    PLUG: (
        "HOW TO WIRE A PLUG",
        ("Screwdriver", "Wire stripper"),
        [
            ("", "Unscrew the plug cover."),
            ("", "Strip the wires."),
            ("SAFETY CHECK", "Tug each wire."),
            ("SAFETY CHECK", "Close the cover."),
        ],
    ),
    SOURDOUGH: (
        "Sourdough",
        ("flour", "water"),
        [
            ("Day 1", "Mix flour and water."),
            ("Day 1", "Rest overnight."),
            ("Day 2", "Shape."),
            ("Day 2", "Bake."),
        ],
    ),
    GARLIC_BREAD: (
        "Garlic Bread",
        (),
        [
            ("", "Preheat the oven to 200 C."),
            ("", "Mix the butter with garlic."),
            ("", "Spread it on the bread."),
            ("", "Bake for 10 minutes."),
        ],
    ),
}


@pytest.mark.parametrize("text", PAGES, ids=lambda text: PAGES[text][0])
def test_pages(text: str) -> None:
    procedure = procedure_from_text(text)
    title, ingredients, instructions = PAGES[text]
    assert procedure.title == title
    assert procedure.ingredients == ingredients
    assert list(zip(sections(procedure), procedure.texts, strict=True)) == instructions


@pytest.mark.parametrize(
    "line",
    [
        "ADVERTISEMENT",
        "Article continues below this ad",
        "Tag @danacooks on Instagram!",
        "US Customary / Metric",
        "US Customary - Metric",
        "1x2x3x",
        "Print Recipe",
        "Jump to Recipe",
        "Jump to Recipe Print Recipe",
        "Jump to Recipe · Watch Video · Pin Recipe",
        "Jump to Video",
        "Watch video",
        "Save Print Share",
        "4.8 from 212 votes",
        "★★★★☆ (23)",
        "Rated 4.5 out of 5",
        "Read 14 reviews",
        "Cook Mode Prevent your screen from going dark",
        "Leave a comment below!",
        "Photo by Jane Doe",
        "© 2024 Tasty Things",
        "35 minutes",
        "1 hr 5 mins",
        "Recipes > Dinner > Curry",
    ],
)
def test_boilerplate(line: str) -> None:
    assert is_boilerplate(line)
    assert procedure_from_text(f"1. Mix it.\n\n{line}\n\n2. Bake it.").texts == ("Mix it.", "Bake it.")


@pytest.mark.parametrize("line", ["Print", "Save", "Share", "Prep Time", "Servings:", "By Jane Doe", "Facebook"])
def test_buttons_are_dropped_from_pages_alone(line: str) -> None:
    assert is_button(line)
    page = f"Ingredients\nflour\n\nMethod\nMix it.\n{line}\nBake it."
    assert procedure_from_text(page).texts == ("Mix it.", "Bake it.")


def test_a_button_may_be_an_instruction() -> None:
    texts = ("Log in", "Search", "Save", "Print")
    assert procedure_from_text("\n".join(texts)).texts == texts


@pytest.mark.parametrize(
    "line",
    [
        "Print the pattern",
        "Share the dough between two bowls",
        "Save the water",
        "Rate the steaks",
        "Follow the seam",
        "Add to the pan",
        "Post a comment on their page.",
        "Get the ingredients",
        "Cook 10 minutes",
        "Rest 5 minutes",
        "Tag the wires",
        "Join the two halves",
    ],
)
def test_instructions_are_no_boilerplate(line: str) -> None:
    assert not is_boilerplate(line) and not is_button(line) and not ends_page(line)


@pytest.mark.parametrize("footer", ["Did you make this recipe?", "You might also like", "Leave a Reply"])
def test_what_follows_a_procedure_is_left_out(footer: str) -> None:
    text = f"1. Mix it.\n2. Bake it.\n\n{footer}\nI would love to see your loaf.\nSee you soon!"
    assert procedure_from_text(text).texts == ("Mix it.", "Bake it.")


def test_a_line_between_items_whose_numbers_go_on_is_no_heading() -> None:
    assert procedure_from_text("1. Mix it.\n\nLet It Rest\n\n2. Bake it.").texts == (
        "Mix it.",
        "Let It Rest",
        "Bake it.",
    )
    assert procedure_from_text("- Mix it with the\nBest Flour\n- Bake it.").texts == (
        "Mix it with the Best Flour",
        "Bake it.",
    )


def test_parts_that_look_alike_are_sections_and_the_first_is_no_title() -> None:
    procedure = procedure_from_text("Dough\n1. Mix it.\n2. Knead it.\n\nSauce\n1. Cook it.")
    assert (procedure.title, sections(procedure)) == ("", ["Dough", "Dough", "Sauce"])
    set_apart = procedure_from_text("Pizza\n\n1. Mix it.\n2. Knead it.\n\nSauce\n1. Cook it.")
    assert (set_apart.title, sections(set_apart)) == ("Pizza", ["", "", "Sauce"])


@pytest.mark.parametrize(
    "heading", ["Method 2", "PART II", "Part 2 of 3: Removing the Wheel", "Stage two - Drying", "Day 2:"]
)
def test_numbered_parts_are_sections(heading: str) -> None:
    procedure = procedure_from_text(f"Take it off.\nLay it down.\n{heading}\nPut it back.\nTighten it.")
    assert procedure.texts == ("Take it off.", "Lay it down.", "Put it back.", "Tighten it.")
    assert sections(procedure)[2:] == [heading.rstrip(":")] * 2


def test_a_how_to_names_itself() -> None:
    procedure = procedure_from_text("How to make tea\nBoil water\nsteep the leaves")
    assert (procedure.title, procedure.texts) == ("How to make tea", ("Boil water", "steep the leaves"))


def test_what_is_told_first_is_kept_where_it_orders_something() -> None:
    assert len(procedure_from_text("This is easy. Heat the oven first.\n\n1. Mix it.\n2. Bake it.")) == 4
    assert len(procedure_from_text("This is easy. I love it.\n\n1. Mix it.\n2. Bake it.")) == 2


def test_boilerplate_among_the_entries_of_json() -> None:
    text = '{"@type": "Recipe", "recipeInstructions": ["Mix it.", "ADVERTISEMENT", "Bake it."]}'
    assert procedure_from_text(text).texts == ("Mix it.", "Bake it.")
    scraped = '{"title": "Pie", "instructions_list": ["Mix it.", "Print Recipe", "Bake it."]}'
    assert procedure_from_text(scraped).texts == ("Mix it.", "Bake it.")

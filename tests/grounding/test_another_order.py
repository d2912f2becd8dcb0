"""A procedure shown in another legal order than written: the bread, written last, is toasted first."""

from __future__ import annotations

from pathlib import Path

import pytest

import graph2vid as g2v
from graph2vid.alignment import Constraint

pytest.importorskip("wordllama", reason="needs graph2vid[text]")

SHAKSHUKA = """Shakshuka

1. Chop the onion and the pepper.
2. Fry the onion and pepper in olive oil until soft.
3. Stir in the garlic, cumin and paprika.
4. Pour in the tomatoes and simmer the sauce.
5. Make hollows in the sauce and crack the eggs into them.
6. Cover the pan and cook the eggs until the whites are set.
7. Scatter parsley and feta over the eggs.
8. Toast the sourdough bread and rub it with garlic.
"""

SPOKEN = [  # second, step (from 0; -1: none), words
    (0, -1, "hello everyone and welcome back to my little kitchen today"),
    (12, 7, "toast the sourdough bread first so slices of sourdough bread go into the toaster"),
    (18, 7, "and now rub the toasted sourdough bread with a clove of garlic"),
    (30, 0, "now I chop the onion and I chop the red pepper into strips"),
    (42, 1, "the onion and the pepper fry in plenty of olive oil until they are soft"),
    (58, 2, "stir in the cumin, the paprika and some garlic and let the spices bloom"),
    (72, 3, "pour in the tomatoes and let the sauce simmer and thicken"),
    (90, -1, "my neighbour taught me this many years ago on a rainy day"),
    (100, 4, "make little hollows in the sauce and crack the eggs into the hollows"),
    (116, 5, "cover the pan with a lid and cook until the egg whites are set"),
    (132, 6, "scatter the parsley and crumble the feta over the eggs"),
    (146, -1, "thank you for watching and see you next time"),
]


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captions of the video."""
    ends = [start for start, *_ in SPOKEN[1:]] + [154]
    cues = [
        f"{_time(start)} --> {_time(min(end, start + 7))}\n{words}\n"
        for (start, _, words), end in zip(SPOKEN, ends, strict=True)
    ]
    path = tmp_path_factory.mktemp("shakshuka") / "video.vtt"
    path.write_text("WEBVTT\n\n" + "\n".join(cues))
    return path


def _time(seconds: int) -> str:
    return f"00:{seconds // 60:02d}:{seconds % 60:02d}.000"


def _begins(found: g2v.Grounding) -> dict[int, float]:
    return {segment.step: segment.start for segment in reversed(found.segments)}


def _assert_all_right(found: g2v.Grounding) -> None:
    truth = {step: start for start, step, _ in reversed(SPOKEN) if step >= 0}
    begins = _begins(found)
    assert begins.keys() == truth.keys() and all(abs(begins[step] - truth[step]) <= 3 for step in truth)


def test_guesses_are_overruled_and_named(video: Path) -> None:
    found = g2v.ground(SHAKSHUKA, video)
    _assert_all_right(found)
    assert found.order[0] == 7 and any(pair[1] == 7 for pair in found.overruled) and not found.elsewhere
    again = g2v.Grounding.from_json(found.to_json())
    assert again.overruled == found.overruled and again == found


def test_a_correction_leaves_the_other_steps_where_they_are(video: Path) -> None:
    bread = [Constraint(kind, 7, 12.0, 25.0) for kind in ("show", "within")]
    found = g2v.ground(SHAKSHUKA, video, constraints=bread)
    _assert_all_right(found)
    assert found.suspended == (7,) and g2v.Grounding.from_json(found.to_json()).suspended == (7,)


def test_laws_squeeze_and_the_free_place_is_offered(video: Path) -> None:
    found = g2v.ground(SHAKSHUKA, video, parser="linear")
    assert 7 not in _begins(found) and 7 in found.not_shown
    (place,) = [place for place in found.elsewhere if place.step == 7]
    assert abs(place.start - 12) <= 3 and (6, 7) in place.against
    assert g2v.Grounding.from_json(found.to_json()) == found

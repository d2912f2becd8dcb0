"""Words of a text, and which of them say what is done."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")

_FUNCTION_WORDS = """
    a an the and or but if so nor of to in on at for from by with without as into onto up down out off over under about
    after before until while once again than then now here there when where why how what which who whom whose
    i me my mine we us our ours you your yours he him his she her hers it its they them their theirs
    this that these those one two some any each every both either few more most much many such same other another all
    is are was were be been being am do does did done have has had having
    will would can could should shall may might must let lets gonna going go got get gets getting
    i'm i've i'll i'd you're you've you'll we're we've we'll it's that's there's they're let's
    don't doesn't didn't can't won't isn't aren't not no yes
    just very too also only even really like okay ok um uh oh well right little bit kind sort lot thing things back way
    want need make sure know see look think say said because
"""

FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""English words that say little about what is done, as far as people use them in narration."""


def words(text: str) -> list[str]:
    """Return the words of a text in their order, in small letters; numbers and signs are left out."""
    return [word.replace("’", "'") for word in _WORD.findall(text.lower())]


def content_words(text: str) -> list[str]:
    """Return the words of a text that are not :data:`FUNCTION_WORDS`; all of them where there are no others."""
    found = words(text)
    return [word for word in found if word not in FUNCTION_WORDS] or found

"""Plain text and Markdown: paragraphs, lists, headings, one instruction per line."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, islice, pairwise, takewhile

from graph2vid.errors import InputError
from graph2vid.text.lexicon import words
from graph2vid.text.parsed_text import Instruction, Procedure
from graph2vid.text.reading.lines import About, Kind, Line, ends_sentence, is_part, lines_of
from graph2vid.text.reading.sentences import sentence_spans
from graph2vid.text.reading.tidy import has_words, tidy
from graph2vid.text.reading.wrapping import begins_order, goes_on, is_paragraph, with_sections

_MOST_TITLE_WORDS = 12
_MOST_HOW_TO_WORDS = 18
_FEWEST_SENTENCES = 3  # of a paragraph in one line, below a title
_TITLE_LINE = re.compile(r"title\s*:\s*(?P<title>\S.*)", re.IGNORECASE)
_TELLS = words(
    "this these those it it's it’s its i i've i’ve i'm i’m my we we've our you you'll you’ll there here they he she"
)
"""First words of sentences that tell, rather than say what to do."""
_FOR_PART = re.compile(r"for the\b|to make the\b", re.IGNORECASE)
_INLINE_NUMBER = re.compile(r"(?:step\s+)?\d{1,2}[.)]\s+", re.IGNORECASE)


def read_plain(text: str, source: str) -> Procedure:
    """Read a procedure written as plain text or Markdown.

    Items of lists are instructions. A block of lines is one instruction per line (a line may go on with the one above),
    unless the lines are those of a broken paragraph; a paragraph gives an instruction per sentence. Headings are
    sections; what stands below "Ingredients" (or the like) is kept apart, and so are notes. What stands before
    "Ingredients" or "Method" is an introduction.
    """
    title, lines = _title(with_sections(lines_of(text, source)))
    ingredients, instructions = _parted(_without_story(with_sections(lines, after_title=bool(title))))
    if not instructions:
        what = "only ingredients" if ingredients else "no instruction"
        raise InputError(f"{source}: {what} found; write an instruction per line, below a heading such as 'Method:'")
    return Procedure(tuple(instructions), title, tuple(ingredients), source)


def plain_instructions(text: str, source: str) -> list[Instruction]:
    """Read instructions from a text that has neither title nor ingredients; there may be none."""
    return _parted(with_sections(lines_of(text, source)))[1]


# -- the title ---------------------------------------------------------------------------------------------


def _title(lines: list[Line]) -> tuple[str, list[Line]]:
    """Return the title, where one is plainly there, and the other lines."""
    content = [place for place, line in enumerate(lines) if line.kind is not Kind.BLANK]
    if len(content) < 2:
        return "", lines
    place = content[0]
    first, second = lines[place], lines[content[1]]
    others = [lines[other] for other in content[1:]]
    rest = lines[place + 1 :]
    if named := _TITLE_LINE.fullmatch(first.text):
        return named["title"], rest
    words = first.text.split()
    if first.kind is Kind.HEADING:
        rivals = (line for line in others if line.kind is Kind.HEADING and line.about is About.PART)
        a_part = first.about is not About.PART or is_part(first.text) or _FOR_PART.match(first.text)
        return (first.text, rest) if not a_part and all(line.level > first.level for line in rivals) else ("", lines)
    how_to = first.text.casefold().startswith("how to ") and len(words) <= _MOST_HOW_TO_WORDS
    if first.kind is Kind.TEXT and how_to and len(sentence_spans(first.text)) == 1:
        return first.text, rest
    too_long = len(words) > _MOST_TITLE_WORDS or first.text.endswith((".", "!", ":", ";", ",", "。"))
    if first.kind is not Kind.TEXT or too_long:
        return "", lines
    several = len(others) > 1 or len(sentence_spans(second.text)) > 1
    in_capitals = all(word[0].isupper() or len(word) < 4 for word in words)
    below, set_apart = others, content[1] > place + 1
    if set_apart:  # by a blank line: the blocks below must be whole sentences
        below = [line for line, after in pairwise([*rest, Line(0, Kind.BLANK)]) if after.kind is not Kind.TEXT]
    texts_below = [line.text for line in below if line.kind is Kind.TEXT]
    a_name = not begins_order(first.text)
    instructions_below = all(ends_sentence(text) or (a_name and begins_order(text)) for text in texts_below)
    over_paragraph = len(others) == 1 and len(sentence_spans(second.text)) >= _FEWEST_SENTENCES
    stands_out = in_capitals or set_apart or over_paragraph or not any(text[0].isupper() for text in texts_below)
    if second.kind is not Kind.TEXT or (several and instructions_below and stands_out):
        return first.text, rest
    return "", lines


def _without_story(lines: list[Line]) -> list[Line]:
    """Leave out what is told before the first list or heading, where it tells and orders nothing."""
    end = next((place for place, line in enumerate(lines) if line.kind in (Kind.ITEM, Kind.HEADING)), 0)
    told = " ".join(line.text for line in lines[:end] if line.kind is Kind.TEXT)
    sentences = [told[start:stop] for start, stop in sentence_spans(told)]
    tells = any(sentence.split(maxsplit=1)[0].casefold() in _TELLS for sentence in sentences)
    return lines[end:] if tells and not any(map(begins_order, sentences)) else lines


# -- ingredients and instructions --------------------------------------------------------------------------


def _parted(lines: Sequence[Line]) -> tuple[list[str], list[Instruction]]:
    """Return ingredients and instructions."""
    places = [place for place, line in enumerate(lines) if line.about in (About.INGREDIENTS, About.METHOD)]
    introduction = lines[: places[0]] if places else []
    # Where numbers stand in it, it is none: the heading stands amid the instructions.
    introduction = [] if any(line.ordered for line in introduction) else introduction
    ingredients, body = _without_ingredients(lines[len(introduction) :])
    # Where nothing follows the ingredients, the instructions stand before them.
    return ingredients, list(_instructions(body)) or list(_instructions(introduction))


def _without_ingredients(lines: Sequence[Line]) -> tuple[list[str], list[Line]]:
    """Return the ingredients, and the lines that hold neither them nor notes."""
    ingredients: list[str] = []
    body: list[Line] = []
    about, level, numbered, previous = About.METHOD, 0, False, Line(0, Kind.BLANK)
    method_from = max((place for place, line in enumerate(lines) if line.about is About.METHOD), default=-1)
    for place, line in enumerate(lines):
        if line.kind is Kind.HEADING:
            if line.about is not About.PART:
                about, level, numbered = line.about, line.level, False
            elif line.level <= level:
                about = About.METHOD
        elif (
            about is About.INGREDIENTS
            and ingredients
            and place > method_from
            and _begins_method(line, previous, numbered)
        ):
            about = About.METHOD
            body.append(Line(line.number, Kind.HEADING))  # the heading over the ingredients is not this one's
        if about is About.METHOD:
            body.append(line)
        elif about is About.INGREDIENTS and line.kind in (Kind.ITEM, Kind.TEXT):
            numbered = numbered or line.ordered
            if line.kind is Kind.TEXT and line.indent >= 2 and previous.kind is Kind.ITEM:
                ingredients[-1] = f"{ingredients[-1]} {line.text}".strip()
                continue
            ingredients.append(line.text)
        previous = line
    return list(filter(None, ingredients)), body


def _begins_method(line: Line, previous: Line, numbered: bool) -> bool:
    """Say whether the instructions begin here, without a heading of their own."""
    if line.kind is Kind.ITEM:
        return line.ordered and not numbered
    sentence = ends_sentence(line.text) and len(line.text.split()) > 2 and not line.text[0].isdigit()
    return line.kind is Kind.TEXT and previous.kind is Kind.BLANK and sentence


def _instructions(lines: Iterable[Line]) -> Iterator[Instruction]:
    """Read the instructions in the order of the text."""
    queue = list(lines)
    section = heading = ""
    within = [(-1, "")]  # of nested lists: indent and the section around
    place = 0
    while place < len(queue):
        line = queue[place]
        place += 1
        if line.kind is Kind.HEADING:
            section, heading, within = line.text, line.text, [(-1, "")]
        elif line.kind is Kind.ITEM:
            if line.level:
                section, within = heading, [(-1, "")]
            while line.indent <= within[-1][0]:
                section = within.pop()[1]
            place, texts = _item_text(queue, place, line)
            following = _following(queue, place)
            nested = following is not None and following.kind is Kind.ITEM and following.indent > line.indent
            only_headline = line.level > 0 and texts == line.text
            over_list = only_headline and following is not None and following.kind is Kind.ITEM and not following.level
            if (nested and texts.endswith(":")) or over_list:
                within.append((-1 if over_list else line.indent, section))
                section = texts.rstrip(":").rstrip()
            elif has_words(texts):
                yield Instruction(texts, section, f"line {line.number}")
        elif line.kind is Kind.TEXT:
            block = [line, *takewhile(lambda line: line.kind is Kind.TEXT, islice(queue, place, None))]
            yield from (replace(found, section=section) for found in _block(block))
            place += len(block) - 1


def _following(queue: Sequence[Line], place: int) -> Line | None:
    """Return the line at ``place``, or the next one where that is blank."""
    return next((line for line in queue[place : place + 2] if line.kind is not Kind.BLANK), None)


def _item_text(queue: Sequence[Line], place: int, item: Line) -> tuple[int, str]:
    """Return the words of an item with the lines that go on with it, and the place after them."""
    texts = [item.text] if item.text else []
    while place < len(queue):
        line = queue[place]
        if line.kind is Kind.BLANK:
            following = _following(queue, place)
            if following is None or following.kind is not Kind.TEXT:
                break
            if not item.level and texts and following.indent < item.indent + 2:
                break
        elif line.kind is Kind.TEXT:
            if item.level and len(texts) == 1 and not ends_sentence(texts[0]):
                texts[0] = texts[0].rstrip(":") + "."  # the headline of a step is a sentence of its own
            texts.append(line.text)
        else:
            break
        place += 1
    return place, " ".join(texts)


# -- blocks of text ----------------------------------------------------------------------------------------


def _block(lines: Sequence[Line]) -> Iterator[Instruction]:
    """Read lines that follow each other: instructions that begin on a line of their own, or a paragraph."""
    if len(lines) > 1 and not is_paragraph(lines):
        yield from _line_by_line(lines)
        return
    text = " ".join(line.text for line in lines)
    starts = list(accumulate((len(line.text) + 1 for line in lines[:-1]), initial=0))
    for start, end in sentence_spans(text):
        words = tidy(text[start:end])
        marker = _INLINE_NUMBER.match(words)
        words = words[marker.end() :] if marker else words
        if has_words(words):
            yield Instruction(words, source=f"line {lines[bisect_right(starts, start) - 1].number}")


def _line_by_line(lines: Sequence[Line]) -> Iterator[Instruction]:
    """Read an instruction per line, with the lines that go on with it."""
    in_capitals = lines[0].text[0].isupper()
    begun = [[lines[0]]]
    for above, line in pairwise(lines):
        if goes_on(above.text, line.text, in_capitals):
            begun[-1].append(line)
        else:
            begun.append([line])
    for parts in begun:
        yield Instruction(" ".join(line.text for line in parts), source=f"line {parts[0].number}")

"""Options, each declared once: the name, type, default, help and limits of an option stand in one line.

Everything else derives from these classes: command-line flags (:mod:`graph2vid.cli.derived_options`), the defaults in
``graph2vid.toml``, columns of manifests, settings of the studio, keyword arguments of :func:`graph2vid.ground`, and
the options in result files. To add an option, add a field and use it::

    class CostOptions(Options, panel="Costs"):
        temperature: float | None = option(None, "Divides the similarities.", above=0.0)
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Real
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints

from graph2vid._deprecated import warn_renamed
from graph2vid._values import LARGEST, shown
from graph2vid.errors import InputError

_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")
_SIMPLE = (bool, int, float, str, Path)
_METAVARS = {int: "N", float: "N", str: "NAME", Path: "FILE"}


def option(default: Any, help: str, **about: Any) -> Any:
    """Declare an option as a field of a class of :class:`Options`.

    Parameters
    ----------
    default
        The value where none is given.
    help : str
        One sentence or two for users.
    **about
        Further attributes of :class:`About`.
    """
    return dataclasses.field(default=default, metadata={"about": About(help, **about)})


def basic_option(default: Any, help: str, **about: Any) -> Any:
    """Declare an option that ``--help`` shows, as :func:`option` does."""
    return option(default, help, basic=True, **about)


@dataclass(frozen=True)
class About:
    """What is declared of an option beside its name, type and default.

    Attributes
    ----------
    help : str
        One sentence or two for users.
    panel : str
        The heading in the help of commands; by default that of the class.
    metavar : str
        What stands for the value in the help: ``SECONDS``, ``FILE.npy``. Of several values, ``NAME,…`` says that they
        may have commas between them.
    basic : bool
        Whether ``--help`` shows it; ``--help-all`` shows every option.
    least, above, most : float, optional
        Limits of a number: at least, more than, at most.
    choices : sequence of str, or callable that returns one
        The values allowed; a callable is asked when a value is checked.
    off : str
        The help of the flag ``--no-…`` of an option that is true by default; by default the same.
    short : str
        A short flag such as ``-o``.
    was : str
        The name in the release before, which still works with a warning.
    """

    help: str
    panel: str = ""
    metavar: str = ""
    basic: bool = False
    least: float | None = None
    above: float | None = None
    most: float | None = None
    choices: Iterable[str] | Callable[[], Iterable[str]] = ()
    off: str = ""
    short: str = ""
    was: str = ""


@dataclass(frozen=True)
class Declared:
    """An option as a class declares it.

    Attributes
    ----------
    name : str
    kind : type
        ``bool``, ``int``, ``float``, ``str``, ``Path``, or ``object`` for values that are checked where they are used
        (policies, arrays).
    optional, many : bool
        Whether None is allowed; whether it is a tuple of such values.
    default : object
    about : About
    """

    name: str
    kind: type
    optional: bool
    many: bool
    default: Any
    about: About

    @property
    def flag(self) -> str:
        """The long flag on the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def metavar(self) -> str:
        """What stands for the value in help."""
        return self.about.metavar or _METAVARS.get(self.kind, "VALUE")

    def checked(self, value: Any, *, text: bool = False) -> Any:
        """Return a value in the option's own type.

        Parameters
        ----------
        value
            What was given.
        text : bool
            Whether numbers and truth values may be written as text, as in manifests.

        Raises
        ------
        InputError
            It is of another type or beyond the limits; the message names the option.
        """
        if value is None and self.optional:
            return None
        if self.many:
            values = [value] if isinstance(value, str) else value
            if not isinstance(values, Iterable):
                raise self._wrong(value)
            found = tuple(self._one(one, text) for one in values)
            has_commas = self.metavar.endswith(",…")
            return tuple(part.strip() for one in found for part in one.split(",")) if has_commas else found
        return self._one(value, text)

    def _one(self, value: Any, text: bool) -> Any:
        if self.kind is object:
            return value
        found: Any = None
        if self.kind is bool:
            found = _truth(value, text)
        elif self.kind in (int, float):
            found = self._number(value, text)
        elif self.kind is Path and isinstance(value, str | os.PathLike):
            found = Path(value)
        elif self.kind is str and isinstance(value, str) and (not self._choices or value in self._choices):
            found = value
        if found is None:
            raise self._wrong(value)
        return found

    def _number(self, value: Any, text: bool) -> float | int | None:
        if isinstance(value, bool) or not isinstance(value, (Real, str) if text else Real):
            return None
        try:
            number = float(value)
        except (ValueError, OverflowError):
            return None
        about = self.about
        least, most = -math.inf if about.least is None else about.least, math.inf if about.most is None else about.most
        within = least <= number <= most and math.isfinite(number) and (about.above is None or number > about.above)
        if not within or (self.kind is int and (number != int(number) or abs(number) > LARGEST)):
            return None
        return int(number) if self.kind is int else number

    @property
    def _choices(self) -> tuple[str, ...]:
        choices = self.about.choices
        return tuple(choices() if callable(choices) else choices)

    def _wrong(self, value: Any) -> InputError:
        return InputError(f"{self.name} must be {self.wanted}, not {shown(value)}")

    @property
    def wanted(self) -> str:
        """What a value must be, in words."""
        if self._choices:
            return f"one of {', '.join(sorted(self._choices))}"
        if self.kind in (int, float):
            limits = (("of at least", self.about.least), ("above", self.about.above), ("at most", self.about.most))
            words = " and ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)
            return f"{'a whole number' if self.kind is int else 'a number'} {words}".rstrip()
        return {bool: "true or false", Path: "a path"}.get(self.kind, "text")


def _truth(value: Any, text: bool) -> bool | None:
    if text and isinstance(value, str):
        word = value.strip().lower()
        return (word in _TRUE) if word in (*_TRUE, *_FALSE) else None
    # numpy's truth values are no bool, and have one of theirs as their item.
    return value if isinstance(value, bool) else value.item() if type(value).__name__ in ("bool", "bool_") else None


@dataclass(frozen=True)
class Options:
    """Base of the classes of options: frozen dataclasses whose fields are made by :func:`option`.

    Values are checked when an object is made, whichever way it is made.
    """

    panel: ClassVar[str] = "Options"

    def __init_subclass__(cls, panel: str | None = None) -> None:
        if panel is not None:
            cls.panel = panel

    def __post_init__(self) -> None:
        for one in declared(type(self)):
            object.__setattr__(self, one.name, one.checked(getattr(self, one.name)))

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], source: str = "") -> Self:
        """Return the options that a mapping holds: a row of a manifest, a table of a file, JSON.

        Parameters
        ----------
        values : mapping of str to object
            Values by name; numbers and truth values may be text. None is no value.
        source : str
            What messages call the mapping.

        Raises
        ------
        InputError
            A name is unknown, or a value is wrong; the message says which.
        """
        found: Self = deal(values, cls, source=source, text=True)[0]
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the values by name, in a form fit for JSON; of arrays and other objects only that they are given."""
        return {one.name: _plain(getattr(self, one.name)) for one in declared(type(self))}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, os.PathLike):
        return str(value)
    if isinstance(value, tuple | list) and all(isinstance(one, str) for one in value):
        return list(value)
    return value[0] if isinstance(value, tuple) and value and isinstance(value[0], str) else "given"


_DECLARED: dict[type[Options], tuple[Declared, ...]] = {}


def declared(cls: type[Options]) -> tuple[Declared, ...]:
    """Return the options of a class, in the order in which they are declared."""
    if cls not in _DECLARED:
        kinds = {name: _kind(hint) for name, hint in get_type_hints(cls).items()}
        fields = dataclasses.fields(cls)
        _DECLARED[cls] = tuple(Declared(f.name, *kinds[f.name], f.default, f.metadata["about"]) for f in fields)
    return _DECLARED[cls]


def _kind(hint: Any) -> tuple[type, bool, bool]:
    """Return the kind of an annotation, whether it allows None, and whether it is a tuple."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    optional = type(None) in parts
    rest = [part for part in parts if part is not type(None)]
    many = len(rest) == 1 and get_origin(rest[0]) is tuple
    if many:
        rest = [get_args(rest[0])[0]]
    return (rest[0] if len(rest) == 1 and rest[0] in _SIMPLE else object), optional, many


def current_names(values: Mapping[str, Any], *classes: type[Options]) -> dict[str, Any]:
    """Return the values with names of the release before replaced by those of today, each with a warning."""
    renamed = {one.about.was: one.name for cls in classes for one in declared(cls) if one.about.was}
    found = {}
    for name, value in values.items():
        if name in renamed:
            warn_renamed(f"the option {name!r}", repr(renamed[name]), stacklevel=4)
        found[renamed.get(name, name)] = value
    return found


def nearest(name: str, known: Iterable[str]) -> str:
    """Return what a message adds about an unknown name: the one that is like it, or all."""
    names = sorted(known)
    near = get_close_matches(str(name)[:100], names, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(names)}"


def deal(values: Mapping[str, Any], *classes: type[Options], source: str = "", text: bool = False) -> tuple[Any, ...]:
    """Return an object of each class, made of values that belong to any of them; see :meth:`Options.from_mapping`.

    Parameters
    ----------
    values : mapping of str to object
        Values by name; None is no value.
    source : str
        What messages call the mapping.
    text : bool
        Whether numbers and truth values may be text.
    """
    where = f"{source}: " if source else ""
    known = {one.name: one for cls in classes for one in declared(cls)}
    found = {}
    for name, value in current_names(values, *classes).items():
        if name not in known:
            raise InputError(f"{where}unknown option {shown(name)}{nearest(name, known)}")
        if value is not None:
            try:
                found[name] = known[name].checked(value, text=text)
            except InputError as error:
                raise InputError(f"{where}{error}") from None
    return tuple(cls(**{one.name: found[one.name] for one in declared(cls) if one.name in found}) for cls in classes)


# -- the options of grounding --------------------------------------------------------------------------------

MOST_SECONDS = 1e9
"""Thirty years; beyond it times lose their fractions."""


@dataclass(frozen=True)
class ProcedureOptions(Options, panel="Procedure"):
    """How the flow graph of a procedure in words is found."""

    parser: str = basic_option(
        "auto", "What finds the flow graph of a procedure in words: auto, rules, learned, linear, bag."
    )


@dataclass(frozen=True)
class EvidenceOptions(Options, panel="Evidence"):
    """How evidence is acquired from a video: its transcript, its visual features, their weights."""

    clip_seconds: float = basic_option(1.0, "Length of a clip.", metavar="SECONDS", above=0.0, most=MOST_SECONDS)
    offset: float = option(
        0.0, "Arrays: where the first clip begins.", metavar="SECONDS", least=-MOST_SECONDS, most=MOST_SECONDS
    )
    language: str | None = basic_option(None, "The language spoken, such as en; detected by default.", metavar="CODE")
    speech_model: str | None = option(None, "A model of faster-whisper, by name or folder; tiny.en by default.")
    hot_words: bool = option(False, "Tell the speech recogniser the steps, where there is noise; takes twice as long.")
    embedder: str = option("wordllama", "What compares the transcript with the steps: wordllama, minilm, st:NAME, …")
    frames: str | None = basic_option(
        None,
        "What compares frames with steps: clip:NAME, siglip:NAME, open_clip:…, i3d, s3d:CHECKPOINT, "
        "array:CLIPS.npy,STEPS.npy. By default only the transcript is used.",
    )
    on_screen: str = option(
        "auto",
        "Whether the text in the picture is read: auto (where hardly anything is said), on, off.",
        metavar="WHEN",
        choices=("auto", "on", "off"),
    )
    narration_weight: float = option(1.0, "Weight of the transcript; 0: no speech is transcribed.", least=0.0)
    frames_weight: float | None = option(
        None, "Weight of the frames; by default from how well they agree with the words in this video.", least=0.0
    )
    extra_scores: str | None = option(
        None,
        "Scores of a model of your own, steps × clips, beside words and frames; nan where it says nothing.",
        metavar="FILE.npy",
    )
    adapted: Any = option(
        None, "A task model of `graph2vid adapt`, learnt from videos of the same procedure.", metavar="FILE"
    )
    max_hours: float = option(24.0, "The longest video that is accepted.", metavar="HOURS", above=0.0)


@dataclass(frozen=True)
class CostOptions(Options, panel="Costs"):
    """How evidence becomes match, drop and skip costs."""

    preset: str | None = option(None, "Named settings of the costs: paper, released, log_odds.")
    match: str | None = option(None, "Match policy: likelihood, likelihood_bg, raw.", metavar="POLICY")
    drop: Any = option(
        None,
        "Cost of background: auto (the default for scores), percentile:30 (such a share of all pairs of a step and a "
        "clip match), prototype:FILE.npy (scores of a class of background; the default for log-probabilities that have "
        "one), constant:1.5 (of costs on one scale, as log-odds are), entropy, vector:FILE.npy.",
        metavar="POLICY[:VALUE]",
    )
    skip: Any = option(
        None,
        "Cost of not showing a step: auto, constant:3, percentile:75, given:FILE.npy; constant:inf: every step must "
        "appear. By default from the evidence; with arrays every step must appear.",
        metavar="POLICY[:VALUE]",
    )
    temperature: float | None = option(
        None, "Divides the similarities; by default 1, and 0.1 for embeddings.", above=0.0
    )


@dataclass(frozen=True)
class AlignOptions(Options, panel="Extended model"):
    """How costs are aligned with the procedure, and what is computed of the alignment."""

    repeat: Any = option(
        None,
        "Cost of repeating a step: auto, 8, percentile:50, given:FILE.npy. By default a step is one segment.",
        metavar="POLICY[:VALUE]",
    )
    min_clips: int = option(1, "The fewest clips of a segment.", least=1)
    durations: Any = option(None, "How long steps last: see the page on file formats.", metavar="FILE.json")
    violation: float | None = option(
        None,
        "Factor of the log-odds that violating an edge with a confidence costs; inf: every guess is a law. By default "
        "the video says it: by how much better it goes with the expected order than with its reverse.",
        least=0.0,
        was="breaking",
    )
    contiguous: bool = option(
        True,
        "Each step is one unbroken segment; otherwise background may lie inside it.",
        off="Let background lie inside a step; by default a step is one unbroken segment.",
        panel="Alignment",
    )
    method: str | None = option(
        None, "How the alignment is found: exact, anytime or brute; chosen by size by default.", panel="Alignment"
    )
    time_limit: float | None = option(
        None,
        "How long to search where there are too many legal orders to try all of them; by default 30.",
        metavar="SECONDS",
        panel="Alignment",
        above=0.0,
    )
    confidence: bool = option(
        True,
        "Compute the confidence of each segment, which takes longer than finding it.",
        off="Leave out the confidence of each segment, which takes longer than finding it.",
        panel="Confidence",
    )
    gamma: float = option(1.0, "Temperature of the posterior; more is less certain.", panel="Confidence", above=0.0)
    calibration: Any = option(
        None,
        "A calibrator of `graph2vid train calibration`; for narration one comes with graph2vid.",
        metavar="FILE.json",
        panel="Confidence",
    )
    doubt: float = option(0.1, "Segments of less confidence are doubtful.", panel="Confidence", least=0.0, most=1.0)
    relax: bool = option(
        False, "Ground without the edges of the flow graph that fight the evidence.", panel="Alignment"
    )
    margins: bool = option(
        False, "By how much each segment is cheaper than the best alternative to it.", panel="Confidence"
    )


@dataclass(frozen=True)
class GroundOptions:
    """All options of grounding, by concern."""

    procedure: ProcedureOptions = ProcedureOptions()
    evidence: EvidenceOptions = EvidenceOptions()
    costs: CostOptions = CostOptions()
    alignment: AlignOptions = AlignOptions()

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], source: str = "", *, text: bool = True) -> Self:
        """Return the options that a mapping holds, of whichever concern; see :func:`deal`."""
        return cls(*deal(values, *GROUND_OPTIONS, source=source, text=text))

    def to_mapping(self) -> dict[str, Any]:
        """Return all values by name: keyword arguments of :func:`graph2vid.ground`."""
        groups = (self.procedure, self.evidence, self.costs, self.alignment)
        return {one.name: getattr(group, one.name) for group in groups for one in declared(type(group))}

    def to_json(self) -> dict[str, Any]:
        """Return all values by name, in a form fit for JSON."""
        return {name: _plain(value) for name, value in self.to_mapping().items()}


GROUND_OPTIONS = (ProcedureOptions, EvidenceOptions, CostOptions, AlignOptions)
"""The classes of the options of grounding."""


@dataclass(frozen=True)
class CheckOptions(Options, panel="Check"):
    """How a video is checked against its procedure."""

    skip: float = basic_option(
        0.0, "The cost of leaving a step out, in units of the evidence; less finds more left out."
    )
    repeat: float = basic_option(6.0, "The cost of repeating a step; of doing it out of order, both.", least=0.0)
    certainty: float = basic_option(
        0.9, "How certain a deviation must be; what is less certain is listed apart.", least=0.5, most=1.0
    )
    gamma: float = basic_option(1.0, "What differences of cost are divided by; more is less certain.", above=0.0)

"""Options: those of a row, which a manifest may set, and those of a whole run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from graph2vid.errors import InputError
from graph2vid.evidence import MATCH_POLICIES, PRESETS
from graph2vid.text import PARSERS

Kind: TypeAlias = Literal["arrays", "captions", "speech"]
KINDS: tuple[Kind, ...] = ("arrays", "captions", "speech")
"""Where the evidence of a row comes from, the quickest first."""

_LONGEST_SHOWN = 60
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")


def _shown(value: Any) -> str:
    """Return a value as a message shows it: not longer than a line."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}… ({len(text):,} characters)"


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"must be a number, not {_shown(value)}") from None
    if isinstance(value, bool) or not math.isfinite(number):
        raise InputError(f"must be a finite number, not {_shown(value)}")
    return number


def _positive(value: Any) -> float:
    number = _number(value)
    if number <= 0:
        raise InputError(f"must be positive, not {_shown(value)}")
    return number


def _not_negative(value: Any) -> float:
    number = _number(value)
    if number < 0:
        raise InputError(f"must be 0 or more, not {_shown(value)}")
    return number


def _count(value: Any) -> int:
    number = _number(value)
    if number < 1 or number != int(number):
        raise InputError(f"must be a whole number from 1 on, not {_shown(value)}")
    return int(number)


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text not in (*_TRUE, *_FALSE):
        raise InputError(f"must be true or false, not {_shown(value)}")
    return text in _TRUE


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"must be text, not {_shown(value)}")
    return value


def _choice(value: Any) -> str:
    """Check POLICY[:VALUE], or a number."""
    return value if isinstance(value, str) else f"{_number(value):g}"


def _one_of(known: Any) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in known:
            raise InputError(f"must be one of {', '.join(sorted(known))}, not {_shown(value)}")
        return str(value)

    return check


ROW_OPTIONS: Mapping[str, Callable[[Any], Any]] = {
    "clip_seconds": _positive,
    "offset": _number,
    "duration": _positive,
    "max_hours": _positive,
    "preset": _one_of(PRESETS),
    "match": _one_of(MATCH_POLICIES),
    "drop": _choice,
    "skip": _choice,
    "repeat": _choice,
    "durations": _text,
    "min_clips": _count,
    "breaking": _not_negative,
    "temperature": _positive,
    "time_limit": _positive,
    "gamma": _positive,
    "contiguous": _truth,
    "confidence": _truth,
    "parser": _one_of(PARSERS),
    "embedder": _text,
    "speech_model": _text,
    "language": _text,
    "frames": _text,
    "narration_weight": _not_negative,
    "frames_weight": _not_negative,
}
"""What a column of this name, or the command line, may say of a row: a check that returns the value."""

OF_ARRAYS = frozenset({"offset", "preset", "contiguous"})
"""Options that narration has no use for: it has its own."""

OF_NARRATION = frozenset(
    {"duration", "max_hours", "embedder", "speech_model", "language", "frames", "narration_weight", "frames_weight"}
)
"""Options that arrays have no use for."""

BEYOND = frozenset({"repeat", "durations", "min_clips", "breaking"})
"""Options for which videos are aligned one by one, on machines of their own."""

DEFAULTS: Mapping[str, Any] = {
    "clip_seconds": 1.0,
    "offset": 0.0,
    "gamma": 1.0,
    "contiguous": True,
    "confidence": True,
    "parser": "auto",
    "embedder": "wordllama",
    "narration_weight": 1.0,
    "frames_weight": 1.0,
}


def check_option(name: str, value: Any) -> Any:
    """Return the value of an option in its own type; a wrong one is an error that names the option."""
    try:
        return ROW_OPTIONS[name](value)
    except InputError as error:
        raise InputError(f"{name} {error}") from None


@dataclass(frozen=True)
class Context:
    """What every worker knows about a run.

    Attributes
    ----------
    folder : str
        Where relative paths of the manifest begin.
    cache : str or None
        The folder of what took long to make (:class:`graph2vid.evidence.evidence_cache.Cache`); None: that of the user.
    options : mapping
        Options of all rows that do not say otherwise.
    problems : mapping of str to str
        By id: why a row cannot be worked on.
    documents : str or None
        Where each video's grounding is written as JSON, too.
    workers : int
        Worker processes that share the memory of a machine.
    processors : tuple of int
        The processors that a worker keeps to, since speech recognition uses all that it sees; none: all.
    """

    folder: str
    cache: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    documents: str | None = None
    workers: int = 1
    processors: tuple[int, ...] = ()


@dataclass(frozen=True)
class RunOptions:
    """How a manifest is worked through; the results do not depend on it.

    Attributes
    ----------
    engine : {"local", "ray"}
        Processes of this machine, or Ray Data.
    workers : int or None
        Worker processes; None: one per processor (of the Ray cluster).
    resume : bool
        Go on with a folder that holds results: rows that have one are left as they are.
    retry_failed : bool
        With ``resume``: rows that failed are worked on again.
    on_error : {"skip", "stop"}
        What happens when a row fails: it is reported and the rest goes on, or the run ends with what is done.
    row_seconds : float
        The time limit of a row; a row that takes longer fails.
    address : str or None
        The address of a Ray cluster; None: one is started on this machine for the run.
    gpus : float
        GPUs of each Ray actor that recognises speech or embeds; 0: none.
    """

    engine: str = "local"
    workers: int | None = None
    resume: bool = False
    retry_failed: bool = False
    on_error: str = "skip"
    row_seconds: float = 1800.0
    address: str | None = None
    gpus: float = 0.0

    def __post_init__(self) -> None:
        for name, value, known in (
            ("engine", self.engine, ("local", "ray")),
            ("on_error", self.on_error, ("skip", "stop")),
        ):
            if value not in known:
                raise InputError(f"{name} is {' or '.join(known)}, not {value!r}")
        if self.workers is not None and self.workers < 1:
            raise InputError(f"at least one worker is needed, not {self.workers}")
        if not self.row_seconds > 0:
            raise InputError(f"the time limit of a row must be a positive number of seconds, not {self.row_seconds!r}")
        if not 0 <= self.gpus < math.inf:
            raise InputError(f"the GPUs of an actor are a number from 0 on, not {self.gpus!r}")
        if self.engine == "local" and (self.address is not None or self.gpus):
            raise InputError("an address and GPUs per actor are for the engine ray (--engine ray)")
        if self.retry_failed and not self.resume:
            raise InputError("retrying what failed goes on with an earlier run: add --resume")

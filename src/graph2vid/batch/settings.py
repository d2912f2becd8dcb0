"""Options: those of a row, which a manifest may set, and those of a whole run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from graph2vid._options import GROUND_OPTIONS, Declared, Options, declared, option
from graph2vid._values import shown
from graph2vid.errors import InputError

Kind: TypeAlias = Literal["arrays", "captions", "speech"]
KINDS: tuple[Kind, ...] = ("arrays", "captions", "speech")
"""Where the evidence of a row comes from, the quickest first."""


@dataclass(frozen=True)
class RowOptions(Options):
    """What a row alone can say."""

    duration: float | None = option(None, "How long the video of captions lasts.", metavar="SECONDS", above=0.0)


ROW_OPTIONS: Mapping[str, Declared] = {
    one.name: one
    for cls in (*GROUND_OPTIONS, RowOptions)
    for one in declared(cls)
    if one.name != "margins"  # the data sets have no place for them
}
"""What a column of this name may say of a row, and a flag of all rows."""

RENAMED: Mapping[str, str] = {one.about.was: name for name, one in ROW_OPTIONS.items() if one.about.was}
"""Columns of the release before that are called otherwise now."""

DEFAULTS: Mapping[str, Any] = {name: one.default for name, one in ROW_OPTIONS.items() if one.default is not None}

POLICIES = ("drop", "skip", "repeat")
"""Options that name a policy, POLICY[:VALUE], or are a number."""

OF_ARRAYS = frozenset({"offset"})
"""Options that videos and captions have no use for."""

OF_NARRATION = frozenset(
    {"adapted", "duration", "max_hours", "embedder", "speech_model", "language", "frames", "narration_weight"}
    | {"frames_weight", "extra_scores"}
)
"""Options that arrays have no use for."""

EXTENDED = ("repeat", "durations", "min_clips", "violation")
"""Options of the extended model."""


def check_option(name: str, value: Any) -> Any:
    """Return the value of an option in its own type; a wrong one is an error that names the option."""
    if name in POLICIES and not isinstance(value, str):
        try:
            return f"{float(value):g}"
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{name} must be a policy or a number, not {shown(value)}") from None
    if name in ("adapted", "durations") and not isinstance(value, str):
        raise InputError(f"{name} must be the path of a file, not {shown(value)}")
    return ROW_OPTIONS[name].checked(value, text=True)


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
    adapted : mapping of str to str
        The task models that were learnt from the rows themselves: paths by :func:`graph2vid.batch.rows.learnt_with`.
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
    adapted: Mapping[str, str] = field(default_factory=dict)
    documents: str | None = None
    workers: int = 1
    processors: tuple[int, ...] = ()


@dataclass(frozen=True)
class RunOptions(Options, panel="Run"):
    """How a manifest is worked through; the results do not depend on it."""

    engine: str = option(
        "local", "What does the work: local (processes of this machine) or ray.", choices=("local", "ray"), basic=True
    )
    workers: int | None = option(
        None, "Worker processes; by default one per processor (of the Ray cluster).", least=1, basic=True
    )
    resume: bool = option(
        False,
        "Go on with a run that was cut short: rows that are done, and are as they were then, are left as they are.",
        basic=True,
    )
    retry_failed: bool = option(False, "With --resume: try again what failed.", basic=True)
    adapt: bool = option(
        False,
        "First learn a task model of each procedure from the transcripts of all its rows, then ground with it.",
        basic=True,
    )
    on_error: str = option(
        "skip",
        "A row that fails is reported and left out, or ends the run with what is done.",
        metavar="skip|stop",
        choices=("skip", "stop"),
        basic=True,
    )
    row_seconds: float = option(
        1800.0, "The time limit of a row; one that takes longer fails.", metavar="SECONDS", above=0.0
    )
    address: str | None = option(
        None, "A Ray cluster; by default one is started on this machine for the run.", metavar="ADDRESS"
    )
    gpus: float = option(0.0, "GPUs of each Ray actor that transcribes or embeds.", least=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine == "local" and (self.address is not None or self.gpus):
            raise InputError("an address and GPUs per actor are for the engine ray (--engine ray)")
        if self.retry_failed and not self.resume:
            raise InputError("retrying what failed goes on with an earlier run: add --resume")

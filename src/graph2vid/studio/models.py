"""What the API takes and gives."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from graph2vid._options import GROUND_OPTIONS, declared
from graph2vid.studio.corrections import CorrectionKind
from graph2vid.studio.edits import Edit, StepId

Title = Annotated[str, Field(max_length=200)]
Place = Literal["upload", "folder", "sample"]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


_ELSEWHERE = (
    "offset",
    "max_hours",
    "frames",
    "frames_weight",
    "extra_scores",
    "narration_weight",
    "speech_model",
    "durations",
    "adapted",
)
"""Options of grounding that the studio does not set: those of arrays, those that name files and models,
and the words for the speech recogniser, with which an edit of the procedure would transcribe anew."""
SETTINGS = tuple(one for cls in GROUND_OPTIONS for one in declared(cls) if one.name not in _ELSEWHERE)
"""The options that it sets."""
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,40}(:([0-9.]{1,20}|inf))?$")]
"""A value of the other settings: a name, with a number where need be (``constant:3``); no file."""
_FIELDS: dict[str, Any] = {
    one.name: ((one.kind if one.kind in (bool, int, float) else Word) | None, None) for one in SETTINGS
}
Settings: Any = create_model("Settings", __base__=_Request, **_FIELDS)


class NewProject(_Request):
    """A project to be made."""

    title: Title = ""


class MediaChoice(_Request):
    """A file: what was handed in, what lies in the named folder, or the bundled sample."""

    place: Place
    name: Annotated[str, Field(min_length=1, max_length=1000)]


class ProjectChange(Settings):  # type: ignore[misc]
    """What is to be changed; what is left out stays. ``null`` for video or captions: none; else: the default."""

    title: Title | None = None
    video: MediaChoice | None = None
    captions: MediaChoice | None = None


class ParseRequest(_Request):
    """Which parser shall find the flow graph."""

    parser: Annotated[str, Field(min_length=1, max_length=60)] = "auto"


class EditRequest(_Request):
    """One edit; with ``revision`` it is refused (409) if the graph has changed since."""

    edit: Edit
    revision: int | None = None


class NewCorrection(_Request):
    """What is known about the video; ``start`` or ``end`` in seconds, null where the span is open."""

    kind: CorrectionKind
    step: StepId | None = None
    start: Annotated[float, Field(ge=-1e9, le=1e9)] | None = None
    end: Annotated[float, Field(ge=-1e9, le=1e9)] | None = None


class Problem(BaseModel):
    """Why a request was refused; ``other`` is the place of the correction that a new one contradicts."""

    error: str
    other: int | None = None


class MediaFile(MediaChoice):
    """A video or captions that can be chosen."""

    kind: Literal["video", "captions"]
    bytes: int


class Chosen(MediaChoice):
    """A file that was chosen, and whether it is still there."""

    there: bool


class Orders(BaseModel):
    """The number of orders that respect the graph; decimal digits, since it may be huge."""

    exact: str | None
    lower: str
    upper: str
    words: str


class FlowState(BaseModel):
    """The flow graph as it is now (a ``graph2vid-flow`` document with reasons), and its picture.

    ``undo_video`` is the id of the video that undo would change something about.
    """

    revision: int
    can_undo: bool
    can_redo: bool
    undo_words: str
    undo_video: str | None
    redo_words: str
    flow: dict[str, Any] | None
    orders: Orders | None
    picture: dict[str, Any] | None


class JobState(BaseModel):
    """How far a job is; ``seconds`` is how long its present stage has taken."""

    id: str
    kind: str
    project: str
    state: Literal["waiting", "running", "done", "failed", "cancelled", "interrupted"]
    stage: str
    done: float | None
    total: float | None
    seconds: float
    message: str
    warnings: list[str]


class Film(BaseModel):
    """What is drawn under the axis of time: small pictures side by side, and how loud each part is (0 … 255).

    Until it is made, ``job`` says how far that is.
    """

    duration: float = 0.0
    pictures: int = 0
    width: int = 0
    height: int = 0
    peaks: list[int] = []
    job: JobState | None = None


class CorrectionState(NewCorrection):
    """A correction, in words too; ``applies`` is false where its step is no longer in the graph."""

    words: str
    applies: bool


class Relaxable(BaseModel):
    """An edge that fights the evidence: what the alignment would cost less without it, and the doubt it would spare."""

    before: str
    after: str
    gain: float
    relieved: int


class ResultState(BaseModel):
    """Whether the result still is that of graph, corrections and media as they are now.

    ``outdated`` lists what has changed since: "graph", "video", "captions", "settings", "corrections", "learned" (what
    was learnt from checked videos). ``made`` says
    when it was made, or checked last: seconds since 1970. ``conflicts`` are edges of the present graph that fight the
    evidence.
    """

    current: bool
    outdated: list[str]
    made: float
    conflicts: list[Relaxable]


class VideoName(BaseModel):
    """A video of a project; the id of the first is empty."""

    id: str
    title: str


class ProjectState(FlowState, Settings):  # type: ignore[misc]
    """All about a project, and about one of its videos: ``shown``.

    ``checked``: all of that is right, a person says. ``learned`` is the number of the task model in use, 0 without one.
    """

    name: str
    title: str
    procedure: str
    procedure_revision: int
    shown: str
    videos: list[VideoName]
    checked: bool
    learned: int
    video: Chosen | None
    captions: Chosen | None
    corrections: list[CorrectionState]
    result: ResultState | None
    job: JobState | None


class NewVideo(_Request):
    """A video to be added to a project: a video, its captions, or both."""

    video: MediaChoice | None = None
    captions: MediaChoice | None = None


class CheckedMark(_Request):
    """Whether all of a video is right now."""

    checked: bool


class Imported(BaseModel):
    """What came of annotations: how many corrections of which videos, and what could not be taken over."""

    videos: list[VideoName]
    corrections: int
    notes: list[str]


class VideoState(VideoName):
    """A video in the list of a project.

    ``status`` is "new", "grounded", "outdated" or "checked". ``bar`` shows the segments: start and end as shares of the
    video, and a colour. ``doubtful`` is how many of them are, ``confidence`` their mean, ``duration`` in seconds.
    """

    has_video: bool
    captions: str | None
    there: bool
    status: Literal["new", "grounded", "outdated", "checked"]
    outdated: list[str]
    corrections: int
    doubtful: int
    confidence: float | None
    duration: float | None
    bar: list[tuple[float, float, str]]
    problem: str


class NextSegment(BaseModel):
    """What to look at in a video: a segment, or a step that was not found (without times)."""

    step: str
    text: str
    start: float | None
    end: float | None
    why: str


class NextVideo(VideoName):
    """A video where corrections teach most: ``seconds`` expected to be wrong, and the share of words ``new`` to us."""

    seconds: float
    new: float
    segments: list[NextSegment]


class Lesson(BaseModel):
    """What was learnt from checked videos.

    ``chosen`` is "general" (nothing is gained: the general evidence stays), "unlabelled" or "labelled". ``gain`` and
    ``error`` are points of IoU on the checked videos, by cross-validation. ``current`` is false when other videos are
    checked, or other corrections hold, than those that it was learnt from.
    """

    number: int
    current: bool
    videos: int
    checked: int
    chosen: str
    gain: float | None
    error: float | None
    words: list[list[str]]


class Corpus(BaseModel):
    """The videos of a project, where to correct next, and what was learnt, from ``least`` checked videos on."""

    videos: list[VideoState]
    next: list[NextVideo]
    lesson: Lesson | None
    least: int


class ProjectSummary(BaseModel):
    """A project in the list; of its videos as in :class:`VideoState`, ``bar`` of the first.

    ``problem`` says what is wrong with the files.
    """

    name: str
    title: str
    steps: int
    video: str
    videos: int
    grounded: int
    checked: int
    has_result: bool
    has_picture: bool
    doubtful: int
    confidence: float | None
    bar: list[tuple[float, float, str]]
    changed: float
    problem: str


class Setting(BaseModel):
    """An option of grounding: ``bool``, ``int``, ``float`` or text; ``default`` is its value where none is set."""

    name: str
    help: str
    kind: str
    default: bool | float | str | None


class About(BaseModel):
    """What this studio is and can do: of export formats the suffixes, and what people call them (``titles``)."""

    version: str
    settings: list[Setting]
    parsers: list[str]
    formats: dict[str, str]
    titles: dict[str, str]
    videos: bool
    upload_limit: int
    suffixes: dict[str, list[str]]

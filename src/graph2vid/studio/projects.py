"""Projects: folders of plain files, each written whole or not at all, so that nothing is lost at any moment.

FOLDER/NAME/project.json       title, videos and captions, settings
            procedure.txt      the procedure in words
            edits.json         all edits of the flow graph and the corrections, and the place among them: undo, redo
            flow.json          the flow graph as it is now, for other tools; made from edits.json
            corrections.json   what a person knows about the (first) video, likewise
            result.json        the grounding, as `graph2vid ground -o` writes it
            check.json         where the video does not follow the procedure, as `graph2vid check --json` writes it
            job.json           what ran last
            media/             videos and captions handed in
            videos/ID/         corrections.json, result.json and check.json of the videos after the first
            learned-N.…        the N-th task model that was learnt; result-N.json are groundings with it
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from typing import Any
from uuid import uuid4
from zlib import crc32

from graph2vid._files import check_format, hold, read_json, read_text, write_json, write_text
from graph2vid._options import GroundOptions
from graph2vid.errors import FormatError, Graph2VidError, InputError
from graph2vid.studio import corrections as correcting
from graph2vid.studio.corrections import Correction
from graph2vid.studio.drafts import Draft
from graph2vid.studio.edits import Checked, History
from graph2vid.studio.places import inside, is_project_name, project_name

KIND = "graph2vid-project"
VERSION = 1
MOST_VIDEOS = 2000
"""The most videos of a project."""


class UnknownError(InputError):
    """There is no such project, file or job."""

    status = 404


@dataclass(frozen=True)
class Media:
    """A file that a project uses: its ``name`` in a ``place``: ``upload``, ``folder`` or ``sample``."""

    place: str
    name: str

    @classmethod
    def from_json(cls, value: Any, source: str) -> Media | None:
        """Read a place and a name, or nothing."""
        if value is None:
            return None
        try:
            return cls(str(value["place"]), str(value["name"]))
        except (TypeError, KeyError):
            raise FormatError(f"{source}: a file has a place and a name, not {value!r}") from None


@dataclass(frozen=True)
class About:
    """What ``project.json`` says.

    Attributes
    ----------
    title : str
        May be empty.
    video, captions : Media or None
        The first video.
    options : GroundOptions
        How videos are grounded; the parser is the one that was chosen last.
    more : mapping of str to (Media or None, Media or None)
        Further videos of the same procedure and their captions, by their ids.
    """

    title: str = ""
    video: Media | None = None
    captions: Media | None = None
    options: GroundOptions = field(default_factory=GroundOptions)
    more: Mapping[str, tuple[Media | None, Media | None]] = field(default_factory=dict)

    @property
    def videos(self) -> dict[str, tuple[Media | None, Media | None]]:
        """All videos and their captions; the id of the first is empty. One without both is left out, among others."""
        first = self.video, self.captions
        return ({"": first} if any(first) or not self.more else {}) | dict(self.more)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document."""
        kept = {key: value for key, value in asdict(self).items() if key not in ("options", "more")}
        more = [{"id": video, **_named(*media)} for video, media in self.more.items()]
        return {"format": KIND, "version": VERSION, **kept, "videos": more, **self.options.to_json()}

    @classmethod
    def from_json(cls, value: Any, source: str) -> About:
        """Read the JSON document; options that are not there have their defaults."""
        document = check_format(value, kind=KIND, version=VERSION, source=source)
        title = document.get("title", "")
        if not isinstance(title, str):
            raise FormatError(f"{source}: title is {title!r}")
        video, captions = (Media.from_json(document.get(key), f"{source}, {key}") for key in ("video", "captions"))
        named = document.keys() & GroundOptions().to_mapping()
        options = GroundOptions.from_mapping({key: document[key] for key in named}, source)
        return cls(title, video, captions, options, _more(document.get("videos", []), source))


def _named(video: Media | None, captions: Media | None) -> dict[str, Any]:
    return {"video": video and vars(video), "captions": captions and vars(captions)}


def _more(entries: Any, source: str) -> dict[str, tuple[Media | None, Media | None]]:
    try:
        if len({one["id"] for one in entries}) < len(entries) or not all(is_project_name(one["id"]) for one in entries):
            raise FormatError(f"{source}: the ids of videos are short names, each of its own")
        return {
            one["id"]: (Media.from_json(one.get("video"), source), Media.from_json(one.get("captions"), source))
            for one in entries
        }
    except (TypeError, KeyError, AttributeError):
        raise FormatError(f"{source}: videos must be a list of objects with an id") from None


@dataclass(eq=False)
class Project:
    """One project. Whoever changes it holds its ``lock``."""

    folder: Path
    lock: threading.RLock = field(default_factory=threading.RLock)
    _history: History | None = None

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    def file(self, name: str) -> Path:
        """Return the path of a file of this project."""
        return inside(self.folder, name)

    @property
    def media(self) -> Path:
        """The folder of what was handed in."""
        return self.file("media")

    # -- project.json ----------------------------------------------------------------------------------------

    @property
    def about(self) -> About:
        """What the project is about."""
        return About.from_json(read_json(self.file("project.json")), f"{self.name}/project.json")

    def change(self, **changes: Any) -> None:
        """Change what the project is about, options of grounding by their names; None is the default of an option."""
        with self.lock:
            about = self.about
            values = about.options.to_mapping()
            given = {name: changes.pop(name) for name in values.keys() & changes}
            changes["options"] = GroundOptions.from_mapping(values | given)
            write_json(self.file("project.json"), replace(about, **changes).to_json())

    # -- its videos ------------------------------------------------------------------------------------------

    @property
    def takes(self) -> list[Take]:
        """All its videos."""
        return [Take(self, video) for video in self.about.videos]

    def take(self, video: str) -> Take:
        """Return one of its videos; the first has the id ""."""
        if video and video not in self.about.more:
            raise UnknownError(f"there is no video {video[:80]!r} in this project")
        return Take(self, video)

    def add_video(self, video: Media | None, captions: Media | None) -> Take:
        """Add a video of the same procedure; the first one if there is none yet."""
        with self.lock:
            about = self.about
            if not any((about.video, about.captions, *about.more)):
                self.change(video=video, captions=captions)
                return Take(self, "")
            if len(about.more) >= MOST_VIDEOS:
                raise InputError(f"a project holds up to {MOST_VIDEOS} videos")
            fresh = uuid4().hex[:12]
            self.change(more={**about.more, fresh: (video, captions)})
            return Take(self, fresh)

    def remove_video(self, video: str) -> None:
        """Take a video out of the project, with its results; files that were handed in stay."""
        with self.lock:
            take, about = self.take(video), self.about
            known = self.history.corrected((), video)
            self.history = known.edited(Checked(op="checked", video=video, checked=False)) if take.is_checked else known
            if video:
                self.change(more={key: media for key, media in about.more.items() if key != video})
                shutil.rmtree(take.folder, ignore_errors=True)
                return
            self.change(video=None, captions=None)
            for pattern in ("result*.json", "previous*.json", "check*.json"):
                for path in self.folder.glob(pattern):
                    path.unlink(missing_ok=True)

    # -- the procedure and its graph -------------------------------------------------------------------------

    @property
    def procedure(self) -> str:
        """The procedure in words; empty if there is none yet."""
        path = self.file("procedure.txt")
        return read_text(path) if path.is_file() else ""

    @procedure.setter
    def procedure(self, text: str) -> None:
        with self.lock:
            write_text(self.file("procedure.txt"), text)

    @property
    def procedure_revision(self) -> int:
        """A number that is another one as soon as the procedure is."""
        return crc32(self.procedure.encode())

    @property
    def history(self) -> History:
        """The edits of the flow graph."""
        with self.lock:
            if self._history is None:
                path, source = self.file("edits.json"), f"{self.name}/edits.json"
                old = self._kept_corrections()
                self._history = (
                    History.from_json(read_json(path), source, old) if path.is_file() else History.empty(old)
                )
                self._write_rest()  # the server may have been killed between the files
            return self._history

    @history.setter
    def history(self, history: History) -> None:
        with self.lock:
            write_json(self.file("edits.json"), history.to_json())
            self._history = history
            self._write_rest()

    def _write_rest(self) -> None:
        """Write what is made from the log, for other tools."""
        self._write_flow()
        for take in self.takes if self._history is not None else ():
            if take.corrections != self._kept_corrections(take):
                take.folder.mkdir(parents=True, exist_ok=True)
                write_json(take.file("corrections.json"), correcting.to_json(take.corrections))

    def _kept_corrections(self, take: Take | None = None) -> tuple[Correction, ...]:
        path = (take or self).file("corrections.json")
        return correcting.from_json(read_json(path), f"{self.name}/corrections.json") if path.is_file() else ()

    def _write_flow(self) -> None:
        path, draft = self.file("flow.json"), self._history and self._history.draft
        if draft is None:
            path.unlink(missing_ok=True)
            return
        document = draft.to_json()
        with contextlib.suppress(Graph2VidError):
            if path.is_file() and read_json(path) == document:
                return
        write_json(path, document)

    @property
    def draft(self) -> Draft | None:
        """The flow graph as it is now."""
        return self.history.draft

    # -- jobs ------------------------------------------------------------------------------------------------

    @property
    def job(self) -> dict[str, Any] | None:
        """What ``job.json`` says about what ran last."""
        with contextlib.suppress(Graph2VidError):  # not there, or damaged; nothing hangs on it
            found = read_json(self.file("job.json"))
            return found if isinstance(found, dict) else None
        return None

    @job.setter
    def job(self, document: dict[str, Any]) -> None:
        write_json(self.file("job.json"), document)

    @property
    def changed(self) -> float:
        """When a file of it was last written: seconds since 1970."""
        with contextlib.suppress(OSError):
            files = (entry for entry in os.scandir(self.folder) if entry.is_file(follow_symlinks=False))
            return max((entry.stat().st_mtime for entry in files), default=0.0)
        return 0.0

    def tidy(self) -> None:
        """Remove what killed writers, jobs and uploads have left; while none of them is at work."""
        for path in self.folder.glob(".*.part"):
            path.unlink(missing_ok=True)
        for path in (*self.folder.glob(".job-*"), *self.folder.glob(".upload-*")):
            shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True)
class Take:
    """One of the videos of a project: somebody doing the procedure."""

    project: Project
    id: str

    @property
    def lock(self) -> threading.RLock:
        """That of the project."""
        return self.project.lock

    @property
    def folder(self) -> Path:
        """Where its files lie."""
        return inside(self.project.folder, f"videos/{self.id}") if self.id else self.project.folder

    def file(self, name: str) -> Path:
        """Return the path of a file of this video."""
        return inside(self.folder, name)

    @property
    def media(self) -> tuple[Media | None, Media | None]:
        """The video, and its captions."""
        about = self.project.about
        return about.more[self.id] if self.id else (about.video, about.captions)

    @property
    def title(self) -> str:
        """What people call it."""
        video, captions = self.media
        found = video or captions
        return found.name if found else "no video yet"

    def choose(self, **media: Media | None) -> None:
        """Choose another video, or other captions (``video=``, ``captions=``)."""
        with self.lock:
            if self.id:
                about = self.project.about
                video, captions = about.more[self.id]
                chosen = media.get("video", video), media.get("captions", captions)
                self.project.change(more={**about.more, self.id: chosen})
            else:
                self.project.change(**media)

    # -- what is known about it ------------------------------------------------------------------------------

    @property
    def corrections(self) -> tuple[Correction, ...]:
        """What a person knows about the video."""
        return self.project.history.known.corrections.get(self.id, ())

    def correct(self, corrections: tuple[Correction, ...]) -> None:
        """Put these in the place of the corrections."""
        with self.lock:
            history = self.project.history.corrected(corrections, self.id)
            if history is not self.project.history:
                self.project.history = history

    @property
    def is_checked(self) -> bool:
        """Whether a person has said that all of it is right."""
        return self.id in self.project.history.known.checked

    # -- results: one for each task model, so that undo brings back those before ---------------------------------

    @property
    def learned(self) -> int:
        """The number of the task model in use; 0: none."""
        return next(reversed(self.project.history.known.learned), 0)

    def results(self) -> list[tuple[int, Path]]:
        """List the results with their task models, the one that holds now first."""
        numbers = (0, *self.project.history.known.learned)
        found = ((number, self.file(numbered("result", number))) for number in reversed(numbers))
        return [(number, path) for number, path in found if path.is_file()]

    def beside(self, name: str) -> Path:
        """Return the path of what goes with the result that holds now: ``check`` or ``previous``."""
        return self.file(numbered(name, next((number for number, _ in self.results()), self.learned)))


def numbered(name: str, learned: int, suffix: str = ".json") -> str:
    """Return the name of a file that goes with a task model; 0: with none."""
    return f"{name}-{learned}{suffix}" if learned else f"{name}{suffix}"


class Projects:
    """All projects in a folder. One process at a time uses it.

    Parameters
    ----------
    folder : Path
        Is made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock_file = (folder / ".lock").open("w")
        except OSError as error:
            raise Graph2VidError(f"cannot use the folder {folder}: {error.strerror}") from error
        try:
            hold(self._lock_file)
        except OSError:
            self._lock_file.close()
            raise Graph2VidError(f"another studio is using {folder}: close it, or name another folder") from None
        self.folder = folder.resolve()
        self._open: dict[str, Project] = {}
        self._lock = threading.Lock()
        for path in (*self.folder.glob(".new-*"), *self.folder.glob(".gone-*")):
            shutil.rmtree(path, ignore_errors=True)
        for project in self:
            project.tidy()

    def close(self) -> None:
        """Let others use the folder."""
        self._lock_file.close()

    def __iter__(self) -> Iterator[Project]:
        """Go through the projects, the one changed last first."""
        found = []
        for path in self.folder.iterdir():
            with contextlib.suppress(UnknownError):  # something else, or deleted this moment
                found.append(self.open(path.name))
        yield from sorted(found, key=lambda project: -project.changed)

    def open(self, name: str) -> Project:
        """Return the project in the folder ``name``."""
        path = self.folder / name
        if not is_project_name(name) or path.is_symlink() or not (path / "project.json").is_file():
            raise UnknownError(f"there is no project {name[:80]!r}")
        with self._lock:
            return self._open.setdefault(name, Project(path))

    def create(self, title: str, procedure: str = "", **settings: Any) -> Project:
        """Make a new project; it appears whole or not at all."""
        fresh = self.folder / f".new-{uuid4().hex}"
        (fresh / "media").mkdir(parents=True)
        write_json(fresh / "project.json", About(title=title, **settings).to_json())
        if procedure:
            write_text(fresh / "procedure.txt", procedure)
        wished = project_name(title)
        names = chain([wished], (f"{wished}-{number}" for number in count(2)))
        with self._lock:
            name = next(name for name in names if not (self.folder / name).exists())
            fresh.rename(self.folder / name)
        return self.open(name)

    def delete(self, name: str) -> None:
        """Remove a project and all that is in it."""
        project = self.open(name)
        with project.lock, self._lock:
            self._open.pop(name, None)
            gone = self.folder / f".gone-{uuid4().hex}"
            project.folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

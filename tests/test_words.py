"""The project uses the field's words: a list of phrases that it does not use, looked for in every text file.

``python tests/test_words.py [PATH…]`` lists all hits, those of packages still to be converted too, and counts them by
package.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SEARCHED = (
    "src",
    "docs",
    "tests",
    "benchmarks",
    "examples",
    ".ci",
    "README.md",
    "CONTRIBUTING.md",
    "Makefile",
)
SUFFIXES = {".py", ".md", ".cpp", ".hpp", ".cu", ".cuh", ".js", ".css", ".html", ".svg", ".toml", ".yml", ".ipynb", ""}

# Matched without regard to case against a line in which names are taken apart: `skip_price` and `SkipPrice` both read
# "skip price". A pattern in RAW is matched against the line as it is written.
INSTEAD = {
    r"\bpric(?:e|es|ed|ing)\b": "cost",
    r"\b(?:un)?paid\b": "cost",
    r"\bdear(?:er|est)?\b": "expensive, of higher cost",
    r"\bdoubtful (?:edge|link|order|precedence)s?\b": "soft precedence, edge of low confidence",
    r"\bbr(?:eak|eaks|eaking|oke|oken) (?:an? |the |no |its |that |soft )*(?:edge|precedence)s?\b": "violate",
    r"\b(?:edge|precedence)s? (?:is |are |was |were |may be |that is |that are )?broken\b": "violated",
    r"\bharden(?:s|ed|ing)?\b": "taken as certain",
    r"\bway back\b": "traceback",
    r"\bwalk(?:s|ed|ing)? back\b": "traceback",
    r"\b(?:machine )?walk hpp\b": "traceback",
    r"\blikeliest\b": "most probable; max-marginal decoding",
    r"\bnurser(?:y|ies)\b": "worker pool",
    r"\b(?:ground|upper) floors?\b": "base modules, layer",
    r"\bthe (?:whole )?house\b": "package, architecture",
    r"\bhouse svg\b": "architecture",
    r"\brooms\b": "packages",
    r"\b(?:a|the|its|this) room (?:imports|of the house|may)\b": "package",
    r"\b(?:the|its|or|class|guard) doors?\b(?! of (?:the )?(?:oven|fridge|car))": "access, entry point",
    r"\breckon(?:s|ed|ing)?\b": "estimate, compute",
    r"\breturn(?:s|ed|ing)? to (?:a|the|its|an earlier|each|this|that) steps?\b": "repeat",
    r"\b(?:is|are|was|be|not) returned to\b": "repeated",
    r"\bskips?(?:,| and) returns?\b": "repeats",
    r"\breturns?(?:,| and) (?:durations|alternatives)\b": "repeats",
    r"\bunbroken (?:runs?|stretch(?:es)?)\b": "segment",
    r"\bruns? of (?:clips|(?:a|its|the|one|each|every|that) steps?|one label)\b": "segment",
    r"\bfirst runs\b": "first segments",
    r"\bon (?:a|its|the) machine[,:]? (?:as it is defined|exactly)": "automaton",
    r"\b(?:compiles? (?:a|the)|class|native|on|plain) machines?\b(?= (?:compile|problem|limit)|[:(])": "automaton",
    r"\bmachine (?:hpp|cpp|walk|problem|limit|state|node|kernel)s?\b": "automaton",
    r"\b(?:state of|start|from) entry\b|\bentry (?:from|start|prices|returns|costs)\b": "arc",
    r"\b(?:all|every|the|these|those|same|other|which|what|by whose|of|policies and) measures\b": "metrics",
    r"^(?:class |[ ]*)measures\b *[:=]": "metrics",
    r"\b(?:the|these|those|all|its|no|whose|class) figures\b(?! of the paper)": "results, numbers",
    r"\bjudg(?:e|es|ed|ing)\b": "evaluate",
    r"\bstud(?:y|ies)\b": "experiment",
    r"(?<!of )(?<!main )\bcourses?\b(?! of (?:a|the) (?:meal|dinner))": "training run, experiment",
    r"\b(?:hear|hears|heard|hearing)\b": "transcribe; transcript",
    r"\bwhat (?:is|was) (?:said|heard)\b": "transcript, narration",
    r"\bwhat (?:is|was) seen\b": "visual features",
    r"\bbeyond the plain\b": "extended model",
    r"\bbeyond (?:md|py)\b": "extended model",
}
RAW = {
    r"--beyond\b|\bbeyond\s*=(?!=)|\bbeyond: ": "extended model",
    r"--breaking\b|\bbreaking\s*[=:](?!=)|[\"'`]breaking[\"'`]|\bbreaking,|\bbreaking\)": "violation",
    r"\bdef (?:hear|see|watch)\(|\bimport (?:\w+, )*(?:hear|see|watch)\b": "transcribe, embed frames",
    r"\bclass Seen\b|\bSeen\(": "visual features",
    r"\bthreads: int\b|\bthreads : int\b|\bchoose_threads\b": "workers",
}

# Lines that declare an old name, which works for one release.
OLD_NAMES = re.compile(r"\brenamed|\bwas=|deprecat|\bold name", re.IGNORECASE)

# Where such words may stand otherwise: path → the words. Sound is heard.
ALLOWED: dict[str, tuple[str, ...]] = {
    "tests/test_words.py": ("",),
    "tests/test_deprecated.py": ("breaking",),
    "tests/test_options.py": ("breaking",),
    "tests/cli/test_derived_options.py": ("breaking",),
    "tests/grounding/test_grounding_service.py": ("breaking",),
    "src/graph2vid/cli/__init__.py": ("breaking", "--beyond"),
    "src/graph2vid/_options.py": ("breaking",),
    "src/graph2vid/_evaluation_options.py": ("likeliest",),
    "src/graph2vid/learn/features/training_run.py": ("judged",),
    "tests/evaluate/test_cli_evaluate.py": ("--beyond",),
    "tests/evaluate/test_extended_model.py": ("likeliest",),
    "tests/batch/test_manifest.py": ("breaking",),
    "src/graph2vid/evidence/media.py": ("hear",),
    "tests/evidence/test_media.py": ("hear",),
    "tests/films.py": ("hear",),
    "tests/alignment/test_problem.py": ("breaking",),
    "src/graph2vid/text/lexicon.py": ("MEASURES",),  # of a kitchen
    "src/graph2vid/text/reading/boilerplate.py": ("course",),  # of a meal
    "src/graph2vid/text/reading/lines.py": ("course",),
    "src/graph2vid/learn/cuda/compiler.py": ("threads",),  # of a GPU
    "src/graph2vid/learn/cuda/plan.py": ("threads",),
    "tests/emulated.py": ("threads",),
    "tests/howtos.py": ("judg",),  # what is set aside to judge by
    "tests/test_howtos.py": ("judg",),
}

# Packages whose words are still to be converted; each goes from here as soon as it is done.
PENDING: dict[str, str] = {}


@dataclass(frozen=True)
class Hit:
    """A phrase that is not used, where it stands, and what to say."""

    path: str
    line: int
    found: str
    say: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: “{self.found}”: say {self.say}"


_APART = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_|(?<=\w)\.(?=[a-z]{2,4}\b)")
_TAKEN_APART = {re.compile(pattern, re.IGNORECASE): say for pattern, say in INSTEAD.items()}
_AS_WRITTEN = {re.compile(pattern): say for pattern, say in RAW.items()}


def hits_in(text: str, path: str) -> Iterator[Hit]:
    """Yield the hits in a text."""
    allowed = ALLOWED.get(path, ())
    for number, line in enumerate(text.splitlines(), start=1):
        if OLD_NAMES.search(line) or "base64," in line or len(line) > 5000:
            continue
        apart = _APART.sub(" ", line)
        for patterns, said in ((_TAKEN_APART, apart), (_AS_WRITTEN, line)):
            for pattern, say in patterns.items():
                if (found := pattern.search(said)) and not any(word in found[0] for word in allowed):
                    yield Hit(path, number, found[0], say)


def hits(places: tuple[str, ...] = SEARCHED) -> Iterator[Hit]:
    """Yield the hits in all files at these places, and in the files' names (as line 0)."""
    for place in places:
        top = ROOT / place
        for file in sorted(top.rglob("*")) if top.is_dir() else [top]:
            path = file.relative_to(ROOT).as_posix()
            if not file.is_file() or "__pycache__" in path or file.suffix not in SUFFIXES:
                continue
            for hit in hits_in(file.name, path):
                yield Hit(path, 0, hit.found, hit.say)
            try:
                text = file.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
            yield from hits_in(text, path)


def package_of(path: str) -> str:
    """Return the longest prefix in PENDING that a path lies under, else its first folder or file."""
    under = [prefix for prefix in PENDING if path == prefix or path.startswith(f"{prefix}/")]
    return max(under, key=len, default="/".join(path.split("/")[: 3 if path.startswith("src/graph2vid/") else 1]))


def test_the_fields_words_are_used() -> None:
    found = [str(hit) for hit in hits() if package_of(hit.path) not in PENDING]
    assert not found, f"{len(found)} phrases that are not used here:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the price of a step", "price"),
        ("def skip_prices() -> None:", "prices"),
        ("class SkipPrice:", "Price"),
        ("align(flow, match, drop, breaking=2.0)", "breaking="),
        ("a doubtful edge", "doubtful edge"),
        ("each step is one unbroken run of clips", "unbroken run"),
        ("which is reckoned at the same pace", "reckoned"),
        ("skips, returns and durations", "skips, returns"),
    ],
)
def test_a_phrase_is_found(text: str, found: str) -> None:
    assert next(hits_in(text, "x.py")).found == found


@pytest.mark.parametrize(
    "text",
    [
        "return the cost",
        "This function returns to the caller.",
        "one run of the command",
        "on this machine",
        "of course",
        "breaking cycles by dropping edges",
        "an enterprise",
        "appreciate",
        "the studio",
        "plt.figure(); the figure of the paper",
        "make room for the tasks",
        "beyond the limit",
    ],
)
def test_everyday_words_are_left_alone(text: str) -> None:
    assert not list(hits_in(text, "x.py"))


def main(places: list[str]) -> int:
    """List the hits and count them by package."""
    found = list(hits(tuple(places) or SEARCHED))
    for hit in found:
        print(hit)
    for package, number in Counter(package_of(hit.path) for hit in found).most_common():
        print(f"{number:6} {package}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

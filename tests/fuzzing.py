"""Fuzzing of all readers: mutated files go in, and every one is read or refused by a Graph2VidError.

    python tests/fuzzing.py --inputs 50000 --seed 1          (or: make fuzz INPUTS=50000)

The corpus is SEEDS, small files of our own; mutations flip, cut, repeat and splice their bytes, and put in what readers
stumble over. All runs in one process whose memory may grow by 1 GB, with 2 s of processor time for each
file; Parquet alone is read by a worker of a batch, as it always is: reading it may crash, which is a refusal. A table
says how many files each reader read and refused; anything else is a defect, and its file is kept.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import io
import json
import random
import resource
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from graph2vid.errors import Graph2VidError
from graph2vid.evidence import read_array
from graph2vid.evidence.captions import read_captions
from graph2vid.export import read_annotations
from graph2vid.flow import FlowGraph
from graph2vid.grounding import Grounding, ground
from graph2vid.grounding.durations_file import read_durations
from graph2vid.text import parse, read_flow, read_procedure
from graph2vid.text.learned.tensors import read_safetensors, write_safetensors

SECONDS = 2.0
MEMORY = 1 << 30
FLOW = FlowGraph.from_edges(["cut", "fry", "serve"], [(0, 2), (1, 2)], "Pears")

RECIPE = (
    b"Pears\n\nIngredients\n- 2 pears\n\nMethod\n1. Cut the pears.\n2. Fry them (5 min.).\n\nFor the sauce:\n1. Stir.\n"
)
PAGE = b"Print\nHow to fry\n\nPart 1\nHeating\n1\nHeat it.\n\n2\nWait. Then go on; slowly.\n\nDid you make this?\nTag @us\n"  # noqa: E501
JSON_LD = (
    b'{"@type": "Recipe", "name": "Pears", "recipeIngredient": ["2 pears"], "recipeInstructions": [{"@type": "HowToSection", '  # noqa: E501
    b'"name": "A", "itemListElement": [{"@type": "HowToStep", "text": "Cut &amp; peel"}]}, "Fry &#233;"]}'
)
HTML = b'<html><!-- x --><script type="application/ld+json">' + JSON_LD + b"</script></html>"
VTT = b"WEBVTT\n\n1\n00:00:01.000 --> 00:00:02.500 align:start\n<v Ann>cut<00:01.500> the &lt;pears\n\n00:03.000 --> 00:04.000\nfry\n"  # noqa: E501
SRT = b"1\n00:00:01,000 --> 00:00:02,000\n<i>cut</i>\n\n2\n00:00:02,000 --> 00:00:03,000\nfry\n"
WHISPER = b'{"segments": [{"start": 0.5, "end": 2.0, "text": " cut it", "words": [{"word": "cut", "start": 0.5, "end": 1, "score": 0.9}]}]}'  # noqa: E501
JSON3 = (
    b'{"events": [{"tStartMs": 10, "dDurationMs": 900, "segs": [{"utf8": "cut"}, {"utf8": " it", "tOffsetMs": 300}]}]}'
)
EAF = (
    b'<?xml version="1.0" encoding="UTF-8"?><ANNOTATION_DOCUMENT AUTHOR="" DATE="2024-01-01T00:00:00+00:00" FORMAT="3.0" '  # noqa: E501
    b'VERSION="3.0"><HEADER MEDIA_FILE="" TIME_UNITS="milliseconds"/><TIME_ORDER><TIME_SLOT TIME_SLOT_ID="a" TIME_VALUE="0"/>'  # noqa: E501
    b'<TIME_SLOT TIME_SLOT_ID="b" TIME_VALUE="90"/></TIME_ORDER><TIER LINGUISTIC_TYPE_REF="t" TIER_ID="steps"><ANNOTATION>'  # noqa: E501
    b'<ALIGNABLE_ANNOTATION ANNOTATION_ID="1" TIME_SLOT_REF1="a" TIME_SLOT_REF2="b"><ANNOTATION_VALUE>cut</ANNOTATION_VALUE>'  # noqa: E501
    b"</ALIGNABLE_ANNOTATION></ANNOTATION></TIER></ANNOTATION_DOCUMENT>"
)
DURATIONS = b'{"format": "graph2vid-durations", "version": 1, "weight": 2, "others": {"median": 20, "spread": 1}, "steps": {"1": {"median": 25, "spread": 0.6}}}'  # noqa: E501
ROWS = [{"id": "a", "procedure": "Cut it.\nFry it.\n", "scores": "[[1, 2], [3, 4]]", "parser": "bag"}]

SETTINGS = {
    "config.json": b'{"model_type": "bert", "hidden_act": "gelu", "hidden_size": 8, "num_hidden_layers": 2, '
    b'"num_attention_heads": 2, "layer_norm_eps": 1e-12, "max_position_embeddings": 64}',
    "pooling.json": b'{"pooling_mode_mean_tokens": true}',
    "sentence_bert_config.json": b'{"max_seq_length": 32}',
}
_PLACES = {name: name for name in SETTINGS} | {"pooling.json": "1_Pooling/config.json"}


def _npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.arange(6, dtype=np.float32).reshape(2, 3))
    return file.getvalue()


def _result() -> bytes:
    return json.dumps(ground(FLOW, scores=np.eye(3, 6), match="raw", drop=0.0).to_json()).encode()


def _parse() -> bytes:
    from graph2vid.text.parse_json import to_json

    return json.dumps(to_json(parse("Cut the pears. Fry them.", "linear"))).encode()


def _safetensors(folder: Path) -> bytes:
    path = folder / "seed.safetensors"
    write_safetensors(path, {"a": np.ones((2, 3), np.float32), "b": np.zeros(4, np.int8)}, {"config": "{}"})
    return path.read_bytes()


def _read_parse(path: Path) -> None:
    from graph2vid._files import read_json
    from graph2vid.text.parse_json import from_json

    from_json(read_json(path))


def _read_manifest(path: Path) -> None:
    from graph2vid.batch.manifest import read_manifest
    from graph2vid.batch.settings import Context

    read_manifest(path, path.parent / "copy.parquet", Context(str(path.parent), str(path.parent / "cache")))


def _parquet() -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    file = io.BytesIO()
    rows = [ROWS[0] | {"id": name, "scores": [[1.0, 2.0], [3.0, 4.0]], "skip": 0.5} for name in ("a", "b")]
    parquet.write_table(pa.Table.from_pylist(rows), file, write_page_checksum=True)
    return file.getvalue()


@cache
def _pool() -> Any:
    from graph2vid.batch.workers import WorkerPool

    pool = WorkerPool()
    atexit.register(pool.close)
    return pool


def _read_parquet(path: Path) -> None:
    from graph2vid.batch.driver import check
    from graph2vid.batch.settings import Context

    check(path, path.parent / "copy.parquet", Context(str(path.parent), str(path.parent / "cache")), _pool())


def _read_settings(path: Path) -> None:
    """Read the settings of a model whose other files of settings are as they should be."""
    from graph2vid.evidence.embed.minilm import Settings

    folder = path.parent / "model"
    (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)
    for name, data in SETTINGS.items():
        (folder / _PLACES[name]).write_bytes(path.read_bytes() if name == path.name else data)
    Settings.read(folder)


def _read_checkpoint(path: Path) -> None:
    from graph2vid.learn.features.use import load_features

    load_features(path)


def _checkpoint(folder: Path) -> bytes:
    """Return the JSON of a checkpoint whose tensors lie beside the files that are mutated."""
    import torch

    from graph2vid.learn.features import TrainingOptions
    from graph2vid.learn.features.checkpoint import NAME, State, save
    from graph2vid.learn.features.residual_mlp import ResidualMLP

    weights = ResidualMLP(4, 8).state_dict()
    about = {"comparison": "cosine", "source": {"kind": "arrays"}}
    save(folder, State(TrainingOptions(), "x", about, 4, 8, weights=dict(weights), best_weights=dict(weights)))
    torch.manual_seed(0)
    return (folder / NAME).read_bytes()


Reader = tuple[Callable[[Path], object], dict[str, bytes]]


def _tensors(folder: Path) -> Reader:
    """Return the files of tensors of a checkpoint, which are read with the hash that they must have."""
    from graph2vid.evidence.evidence_cache import content_hash

    about = json.loads(_checkpoint(folder / "changed"))
    corpus = {path.name: path.read_bytes() for path in (folder / "changed").glob("*.safetensors")}

    def read(path: Path) -> None:
        for name, data in corpus.items():
            (folder / "changed" / name).write_bytes(path.read_bytes() if name == path.name else data)
        for file in about["files"].values():
            file["hash"] = content_hash(folder / "changed" / file["name"])
        (folder / "changed" / "checkpoint.json").write_text(json.dumps(about))
        _read_checkpoint(folder / "changed")

    return read, corpus


def readers(folder: Path) -> dict[str, Reader]:
    """Return each reader with its corpus: files by their names."""
    found: dict[str, Reader] = {
        "procedure": (
            read_procedure,
            {"a.txt": RECIPE, "b.txt": PAGE, "a.md": RECIPE, "a.json": JSON_LD, "a.html": HTML},
        ),
        "flow graph": (
            lambda path: read_flow(path, "bag"),
            {
                "a.flow": b'title: Pears\ncut: cut "it"\n"a b": "x \\n y"\nfry:  # no text\ncut, "a b" -> fry\noptional: cut\n',  # noqa: E501
                "b.flow": b"a: x\nb: y\nc: z\na -0.8-> b\nalternatives: b | c\n",
                "a.dot": b'digraph { label="Pears"; a [label="cut" optional=true]; {a b} -> c [confidence="0.5"]; d [label=<x<b>y</b>>] }',  # noqa: E501
                "a.json": json.dumps(FLOW.to_json()).encode(),
                "a.txt": b"# graph2vid flow graph\n\na: x\nb: y\na -> b\n",
            },
        ),
        "captions": (
            read_captions,
            {
                "a.vtt": VTT,
                "a.srt": SRT,
                "a.json": WHISPER,
                "a.json3": JSON3,
                "a.sbv": b"0:00:01.000,0:00:02.000\ncut\n\n0:00:03.000,0:00:04.000\nfry\n",
                "a.txt": b"0:15 now we cut\n[1:02:03] and fry\n00:15 - 00:20 x\n",
            },
        ),
        "annotations": (
            lambda path: read_annotations(path, FLOW),
            {"a.csv": b"id,start,end\ncut,0:01,5\nfry,,\n", "b.csv": b"1,0.5,2\n2,3,4\n", "a.eaf": EAF},
        ),
        "result": (Grounding.load, {"a.json": _result()}),
        "parse": (_read_parse, {"a.json": _parse()}),
        "durations": (lambda path: read_durations(path, FLOW, 1.0), {"a.json": DURATIONS}),
        "array": (read_array, {"a.npy": _npy()}),
        "safetensors": (read_safetensors, {"a.safetensors": _safetensors(folder)}),
        "parquet": (_read_parquet, {"a.parquet": _parquet()}),
        "settings": (_read_settings, SETTINGS),
        "manifest": (
            _read_manifest,
            {
                "a.jsonl": "\n".join(map(json.dumps, ROWS * 2)).encode(),
                "a.csv": b'id,procedure,scores,parser\na,"Cut it.\nFry it.\n","[[1,2],[3,4]]",bag\n',
            },
        ),
    }
    with contextlib.suppress(ImportError):  # torch is not installed
        found["checkpoint"] = (_read_checkpoint, {"checkpoint.json": _checkpoint(folder)})
        found["tensors"] = _tensors(folder)  # later, for their files lie where those of the checkpoint do
    return found


NASTY = [
    *(
        b"9" * 400,
        b"9" * 5000,
        b"1e300",
        b"1e400",
        b"-1",
        b"NaN",
        b"Infinity",
        b"null",
        b"true",
        b"\\ud800",
        b"\xff\xfe",
    ),
    *(b"[" * 3000, b"{" * 300, b'{"a":' * 2000, b"(" * 500, b"<" * 2000, b"." * 3000, b" " * 3000, b"\n" * 500, b"\0"),
    *(b"&#" + b"9" * 5000 + b";", b"\xed\xa0\x80", "\u2028\u202e".encode(), b"x" * 140_000, b"-->", b"->", b'"', b"\\"),
    *(
        b"9999:00:00.000",
        b":",
        b"#",
        b"1.",
        b"\xef\xbb\xbf",
        b"<!--",
        b"]]>",
        b"0" * 40,
        b"1e-320",
        b"''",
        b"{}",
        b"[]",
    ),
]


def mutated(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """Return ``data`` after one to four changes."""
    for _ in range(chance.choice((1, 1, 2, 4))):
        at, length = chance.randrange(len(data) + 1), chance.choice((1, 1, 4, 16, 200))
        kind = chance.randrange(7)
        if kind == 0 and data:
            at = min(at, len(data) - 1)
            data = data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + data[at + length :]
        elif kind == 2:
            data = data[:at] + data[at : at + length] * chance.choice((2, 3, 50)) + data[at + length :]
        elif kind in (3, 4):
            data = data[:at] + chance.choice(NASTY) + data[at + (0 if kind == 3 else length) :]
        elif kind == 5:
            other = chance.choice(others)
            data = data[:at] + other[chance.randrange(len(other) + 1) :]
        else:
            data = data[:at]
    return data


class TooSlowError(BaseException):
    """A file took more time than it may."""


def _too_slow(*_: object) -> None:
    raise TooSlowError


def outcome(read: Callable[[Path], object], path: Path) -> str:
    """Read one file: "read", "refused", or what went wrong."""
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        read(path)
        return "read"
    except Graph2VidError as error:
        return "refused" if "\n" not in str(error) and len(str(error)) < 2000 else "not one line"
    except TooSlowError:
        return f"more than {SECONDS:g} s"
    except MemoryError:
        return f"more than {MEMORY >> 20} MiB"
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:80]}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def fuzz(inputs: int, seed: int, keep: Path, chosen: str | None = None) -> dict[str, Counter[str]]:
    """Feed the readers with so many files in all; files that show a defect are kept in ``keep``."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGVTALRM, _too_slow)
    chance = random.Random(seed)
    found: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        every = {name: reader for name, reader in readers(folder).items() if chosen in (None, name)}
        others = [data for _, corpus in every.values() for data in corpus.values()]
        for reader, (read, corpus) in every.items():
            counts = found[reader] = Counter()
            for file, data in corpus.items():  # as it is, for what comes later of modules and models
                (folder / file).write_bytes(data)
                assert outcome(read, folder / file) in ("read", "refused"), (reader, file)
            for _ in range(inputs // len(every) + 1):
                file = chance.choice(list(corpus))
                made = mutated(corpus[file], others, chance)
                (folder / file).write_bytes(made)
                result = outcome(read, folder / file)
                counts[result] += 1
                if result not in ("read", "refused"):
                    keep.mkdir(parents=True, exist_ok=True)
                    (keep / f"{reader.replace(' ', '-')}-{sum(counts.values())}-{file}").write_bytes(made)
    return found


def bound_memory() -> None:
    """Let this process grow by so much and no more."""
    status = Path("/proc/self/status")
    if status.exists():
        size = next(int(line.split()[1]) << 10 for line in status.read_text().splitlines() if line.startswith("VmSize"))
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, resource.RLIM_INFINITY))


def main(arguments: list[str] | None = None) -> int:
    """Fuzz, and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--inputs", type=int, default=50_000, help="files in all")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--reader", help="one reader only")
    options.add_argument(
        "--keep", type=Path, default=Path("fuzz-defects"), help="where files that show a defect are kept"
    )
    given: Any = options.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        readers(Path(name))  # what is imported and loaded once does not count
    bound_memory()
    found = fuzz(given.inputs, given.seed, given.keep, given.reader)
    defects = 0
    print(f"{'reader':14}{'files':>8}{'read':>8}{'refused':>9}  defects")
    for reader, counts in found.items():
        wrong = {what: number for what, number in counts.items() if what not in ("read", "refused")}
        defects += sum(wrong.values())
        told = "; ".join(f"{number} × {what}" for what, number in wrong.items()) or "none"
        print(f"{reader:14}{sum(counts.values()):8}{counts['read']:8}{counts['refused']:9}  {told}")
    print(f"{sum(sum(counts.values()) for counts in found.values())} files, {defects} defects")
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())

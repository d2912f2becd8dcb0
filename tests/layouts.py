"""Small folders in the layouts of public datasets, written by the tests."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CLASSES = ("background", "cut_tomato", "cut_cheese", "mix")
REAL = Path(os.environ.get("GRAPH2VID_DATA", Path(__file__).parents[2] / "shared" / "data"))


def real_data(name: str) -> Path:
    """Return the folder with real data, or skip the test where it is not."""
    if not (REAL / name).is_dir():
        pytest.skip(f"no real data: {REAL / name} is not there (GRAPH2VID_DATA says where to look)")
    return REAL


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def write_json(path: Path, value: Any) -> Path:
    return write(path, json.dumps(value))


def write_array(path: Path, array: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.asarray(array), allow_pickle=False)
    return path


def segmentation(root: Path, videos: Mapping[str, str] | None = None) -> Path:
    """Write the action-segmentation layout; a video is a string of class numbers, one per clip."""
    videos = videos or {"v1": "0111220333", "v2": "2221110330", "v10": "01111022233"}
    write(root / "mapping.txt", "".join(f"{number} {name}\n" for number, name in enumerate(CLASSES)))
    for video, labels in videos.items():
        write(root / "groundTruth" / f"{video}.txt", "".join(f"{CLASSES[int(label)]}\n" for label in labels))
        write_array(root / "scores" / f"{video}.npy", np.eye(4)[[int(label) for label in labels]])
    names = list(videos)
    for split in range(1, len(names) + 1):
        test = names[split - 1]
        write(root / "splits" / f"test.split{split}.bundle", f"{test}.txt\n")
        write(root / "splits" / f"train.split{split}.bundle", "".join(f"{name}\n" for name in names if name != test))
    return root


def framewise(root: Path, videos: Mapping[str, str] | None = None, kind: str = "probabilities") -> Path:
    """Write frame-wise scores in the action-segmentation layout, with two activities that names tell."""
    videos = videos or {
        "P1_salad": "0111220333", "P2_salad": "2221110330", "P3_salad": "01111022233",
        "P1_tea": "0044455", "P2_tea": "4440555", "P3_tea": "44455500",
    }  # fmt: skip
    names = (*CLASSES, "boil", "pour")
    write(root / "mapping.txt", "".join(f"{number} {name}\n" for number, name in enumerate(names)))
    for video, labels in videos.items():
        write(root / "groundTruth" / f"{video}.txt", "".join(f"{names[int(label)]}\n" for label in labels))
        scores = np.full((len(labels), len(names)), 0.02)
        scores[np.arange(len(labels)), [int(label) for label in labels]] = 0.9
        scores = {"probabilities": scores, "log-probabilities": np.log(scores), "logits": np.log(scores) + 3}[kind]
        write_array(root / "scores" / f"{video}.npy", scores.astype(np.float32))
    ids = list(videos)
    for split in (1, 2, 3):
        test = ids[split - 1 :: 3]
        write(root / "splits" / f"test.split{split}.bundle", "".join(f"{name}.txt\n" for name in test))
        train = [name for name in ids if name not in test]
        write(root / "splits" / f"train.split{split}.bundle", "".join(f"{name}.txt\n" for name in train))
    return root


VTT = (
    "WEBVTT\n\n00:00:01.000 --> 00:00:03.500\ncut the tomato\n\n00:06.000 --> 00:07.000\nnow <b>stir</b> it &amp; go\n"
)

TASKS = (
    "101\nMake Salad\nhttp://example.org/salad\n3\ncut tomato,add salt_flakes,stir\n\n"
    "102\nMake Tea\nhttp://example.org/tea\n2\nboil water,pour water\n"
)


def crosstask(root: Path) -> Path:
    """Write CrossTask in the three folders of a release, its procedures and its captions."""
    write(root / "crosstask_release" / "tasks_primary.txt", TASKS)
    write(root / "crosstask_release" / "videos_val.csv", "101,a_1,http://example.org\n")
    narrated = root / "crosstask_narrated"
    for video in ("a_1", "-b"):
        write(narrated / "captions" / f"{video}.vtt", VTT)
        write(narrated / "annotations" / f"101_{video}.csv", "1,1.0,4.0\n3,6.2,7.5\n")
    write_json(
        root / "crosstask_procedures" / "procedures.json",
        [
            {
                "task_id": 101,
                "title": "How to Make Salad",
                "instructions": ["Wash and cut.", "Season.", "Stir well.", "Serve."],
                "crosstask_step_to_instruction": [[0], [], [1, 2]],
                "video_duration": {"a_1": 10.2, "-b": 9.0},
            }
        ],
    )
    return root


def youcook2(root: Path) -> Path:
    """Write YouCook2 with two captioned videos."""
    rows = [
        {"segment": [1, 4], "id": 0, "sentence": "cut the tomato"},
        {"segment": [5, 8], "id": 1, "sentence": "stir everything"},
    ]
    record = {"duration": 9.5, "recipe_type": "113", "dish": "salad", "annotations": rows}
    write_json(root / "annotations.json", {"va": record, "vb": record | {"duration": 8.5}})
    write(root / "captions" / "va.vtt", VTT)
    write(root / "captions" / "vb.srt", "1\n00:00:01,000 --> 00:00:03,500\ncut the tomato\n")
    return root


FLOW = """title: Greek salad
tomato: cut the tomato
salt: add salt
stir: stir
tomato, salt -> stir
"""


def captioned(root: Path) -> Path:
    """Write a plain folder of captioned videos of two tasks, one with a flow graph, one with a list of steps."""
    write(root / "procedures" / "salad.flow", FLOW)
    write(root / "procedures" / "iced_tea.txt", "1. Boil water.\n\n2. Pour it over ice\n")
    write(root / "captions" / "a_1.vtt", VTT)
    write(root / "captions" / "b.srt", "1\n00:00:01,000 --> 00:00:03,500\nboil the water\n")
    write(root / "annotations" / "salad_a_1.csv", "step,start,end\n1,1.0,4.0\nStir,6.2,7.5\n")
    write(root / "annotations" / "iced_tea_b.csv", "boil_water,1.0,3.0\n2,4,5.5\n")
    write(root / "durations.csv", "video,seconds\na_1,10.2\n")
    return root


def captaincook4d(root: Path) -> Path:
    """Write CaptainCook4D: one recipe, in whose graph one step stands twice, and two recordings."""
    texts = ("START", "Boil-Boil water", "Pour-Pour water", "Stir-Stir", "Pour-Pour water", "END")
    nodes = {str(node): text for node, text in enumerate(texts)}
    edges = [[node, node + 1] for node in range(5)]
    write_json(root / "task_graphs" / "hottea.json", {"steps": nodes, "edges": edges})

    def step(number: int, text: str, start: float, end: float) -> dict[str, Any]:
        return {"step_id": number, "start_time": start, "end_time": end, "description": text, "has_errors": start < 0}

    boil, pour, stir = (71, "Boil-Boil water"), (9, "Pour-Pour water"), (40, "Stir-Stirr")
    common = {"activity_id": 5, "activity_name": "Hot Tea", "person_id": 1, "environment": 2}
    one = [step(*boil, 1.0, 20.0), step(*pour, 21.0, 30.0), step(*stir, 28.0, 40.0), step(*pour, 41.0, 50.0)]
    two = [step(*pour, 2.0, 9.0), step(*boil, 10.0, 20.0), step(*stir, -1.0, -1.0)]
    path = root / "annotation_json" / "complete_step_annotations.json"
    write_json(path, {"5_1": common | {"recording_id": "5_1", "steps": one}, "5_2": common | {"steps": two}})
    write_json(
        root / "annotation_json" / "error_annotations.json",
        [
            {"recording_id": "5_1", "step_annotations": [{"step_id": 71}]},
            {"recording_id": "5_2", "step_annotations": [{"step_id": 9, "errors": [{"tag": "Order Error"}]}]},
        ],
    )
    write(root / "metadata" / "video_information.csv", "recording_id,duration(sec)\n5_1,52.0\n5_2,25.0\n")
    write_json(
        root / "data_splits" / "person_data_split_normal.json", {"train": ["5_1", "x"], "val": [], "test": ["5_2"]}
    )
    return root

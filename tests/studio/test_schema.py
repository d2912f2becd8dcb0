"""Whatever is sent to the API, it never breaks: requests made from its own description."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from graph2vid.flow import FlowGraph
from graph2vid.grounding import ground
from graph2vid.studio.app import create_app
from graph2vid.studio.jobs import Jobs
from studios import with_graph

schemathesis = pytest.importorskip("schemathesis")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A studio whose jobs fail at once, with one project in it that has a graph, a video and a result."""
    folder: Path = tmp_path_factory.mktemp("schema") / "projects"
    app = create_app(folder, upload_limit=1 << 16, jobs=Jobs(command=["false"]))
    with TestClient(app, base_url="http://127.0.0.1:8765") as client:
        name = with_graph(client)
        client.patch(f"/api/projects/{name}", json={"video": {"place": "sample", "name": "spaghetti.mp4"}})
        flow = FlowGraph.load(folder / name / "flow.json")
        ground(flow, scores=np.eye(3, 9)).save(folder / name / "result.json")
        yield app


# What makes a request pass the check of access: names that are there.
KNOWN = {
    "project": st.just("salad"),
    "name": st.sampled_from(["film.mp4", "film.vtt", "x.flow"]),
    "number": st.integers(-1, 2),
    "format": st.sampled_from(["json", "vtt", "elan", "youtube"]),
    "step": st.sampled_from("abc"),
    "before": st.sampled_from("abc"),
    "after": st.sampled_from("abc"),
    "parser": st.sampled_from(["bag", "rules"]),
    "revision": st.none(),
}


def test_every_operation_withstands_what_its_description_allows(app: Any) -> None:
    operations = [found.ok() for found in schemathesis.openapi.from_dict(app.openapi()).get_all_operations()]
    assert len(operations) >= 25
    seen: dict[str, set[int]] = {}
    with TestClient(app, base_url="http://127.0.0.1:8765", raise_server_exceptions=False) as client:
        for operation in operations:
            seen[f"{operation.method} {operation.path}"] = _statuses(client, operation)
    # Some requests got all the way, and not only to the check of access.
    assert sum(any(status < 300 for status in statuses) for statuses in seen.values()) >= 20, seen


def _statuses(client: Any, operation: Any) -> set[int]:
    statuses = set()

    @given(case=operation.as_strategy(), data=st.data())
    @settings(
        max_examples=8,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: Any, data: st.DataObject) -> None:
        deletes_project = case.method == "DELETE" and case.path == "/api/projects/{project}"
        if not deletes_project and data.draw(st.integers(0, 3)):
            edit = case.body.get("edit") if isinstance(case.body, dict) else None
            for part in (case.path_parameters, case.query, case.body, edit):
                for key in KNOWN.keys() & (part.keys() if isinstance(part, dict) else ()):
                    part[key] = data.draw(KNOWN[key])
            if "video" in (case.query or {}):
                case.query["video"] = ""  # the first one; in bodies this is a file
        asked = case.as_transport_kwargs(base_url="http://127.0.0.1:8765")
        body = {
            "content" if key == "data" else key: asked[key] for key in ("json", "data") if asked.get(key) is not None
        }
        headers = {**(asked.get("headers") or {}), "host": "127.0.0.1"}
        answer = client.request(asked["method"], asked["url"], params=asked.get("params"), headers=headers, **body)
        assert answer.status_code < 500, (case.method, asked["url"], body, answer.text)
        if answer.status_code >= 400:
            assert answer.json()["error"]
        assert str(answer.status_code) in case.operation.definition.raw["responses"], (case.method, asked["url"])
        statuses.add(answer.status_code)

    ask()
    return statuses


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    path=st.sampled_from(["edits", "corrections", "parse", "undo", "redo", "ground"]),
    body=JSON | st.binary(max_size=60),
)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_nonsense_is_refused(app: Any, path: str, body: Any) -> None:
    client = TestClient(app, base_url="http://127.0.0.1:8765", raise_server_exceptions=False)
    content = body if isinstance(body, bytes) else json.dumps(body).encode("utf-8", "surrogatepass")
    headers = {"content-type": "application/json"}
    answer = client.post(f"/api/projects/salad/{path}", content=content, headers=headers)
    assert answer.status_code < 500, answer.text

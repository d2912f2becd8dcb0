"""The floors and peers do the work that they are said to do, and reports have their form."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import align as bench_align_module
from benchmarks import apart, jobs, peers
from benchmarks.__main__ import main
from benchmarks.align import bench_align
from benchmarks.anytime import bench_anytime
from benchmarks.cases import CASES, Case, bag, salads, threads
from benchmarks.extended import bench_extended
from benchmarks.floors import ScalarScan, python_loop
from benchmarks.fst import Automata
from benchmarks.memory import KEEP_NOTHING, measure_apart
from benchmarks.parser import bench_parser
from benchmarks.peers import bench_peers
from benchmarks.report import duration, times
from benchmarks.stream import bench_stream
from benchmarks.timing import Effort, race
from benchmarks.tsort import bench_tsort
from graph2vid.alignment import align, backends
from graph2vid.errors import Graph2VidError, InputError
from graph2vid.flow import FlowGraph
from graph2vid.tsort import TSortGraph

HASTE = Effort(seconds=0.0, rounds=1, slice_seconds=0.0001)

needs_kernels = pytest.mark.skipif(backends.native() is None, reason="the compiled kernels are not installed")


def small_dag(seed: int) -> FlowGraph:
    random = np.random.default_rng(seed)
    steps = int(random.integers(1, 6))
    edges = [(a, b) for b in range(steps) for a in range(b) if random.random() < 0.4]
    return FlowGraph.from_edges([str(i) for i in range(steps)], edges)


def small_costs(seed: int, steps: int) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    clips = int(random.integers(steps, steps + 8))
    return random.random((steps, clips)), random.random(clips)


# ---- the cases


def test_cases_have_the_sizes_they_are_named_for() -> None:
    sizes = {case.name: case for case in CASES}
    assert sizes["crosstask"].tsort.n_states == 77
    assert sizes["long"].tsort.n_states == 77
    assert sizes["threads4x4"].tsort.n_ideals == 5**4
    assert sizes["bag14"].tsort.n_states == 14 * 2**13
    assert [case.clips for case in CASES] == [100, 200, 332, 100, 100, 100, 100, 20_000, 200]
    assert sizes["many"].videos == 64


def test_salads_is_what_it_is_said_to_be() -> None:
    flow = salads()
    assert len(flow) == 17
    assert len(flow.edges) == 30
    assert flow == flow.transitive_reduction()
    assert abs(TSortGraph.compile(flow).n_states - 20_000) < 100


def test_threads_between_a_first_and_a_last_step() -> None:
    flow = threads(2, 1, ends=True)
    assert set(flow.edges) == {(0, 1), (3, 0), (3, 2), (1, 4), (2, 4)}


# ---- the floors


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_python_loop_finds_the_cost(seed: int) -> None:
    flow = small_dag(seed)
    match, drop = small_costs(seed, len(flow))
    tsort = TSortGraph.compile(flow)
    assert python_loop(tsort, match, drop)() == pytest.approx(align(tsort, match, drop).cost)


@needs_kernels
def test_scan_counts_its_updates() -> None:
    scan = ScalarScan(100, np.float32)
    assert np.isfinite(scan())
    assert scan.seconds_per_update(2.0) == pytest.approx(2e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_automata_find_the_cost_and_the_labels(seed: int, contiguous: bool) -> None:
    pytest.importorskip("kaldifst")
    flow = small_dag(seed)
    match, drop = small_costs(seed, len(flow))
    tsort = TSortGraph.compile(flow)
    ours = align(tsort, match, drop, contiguous=contiguous)
    automata = Automata(tsort, contiguous)
    cost, labels = automata.read(automata.align(match, drop))
    assert cost == pytest.approx(ours.cost, rel=1e-5)
    assert ours.labels is not None
    assert labels == ours.labels.tolist()


# ---- timing


def test_race_takes_turns_and_the_best() -> None:
    calls: list[str] = []
    best = race(
        {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")},
        Effort(seconds=0.0, rounds=3, slice_seconds=1e-9),
    )
    assert calls == ["a", "b"] * 4  # once cold, then three turns
    assert all(0 < seconds < 1 for seconds in best.values())


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(2.0, "2.00 s"), (0.0123, "12.3 ms"), (7.77e-6, "7.77 µs"), (2.3e-8, "23.0 ns"), (None, "—")],
)
def test_durations(seconds: float | None, written: str) -> None:
    assert duration(seconds) == written


def test_ratios() -> None:
    assert [times(ratio) for ratio in (3.424, 34.24, 1342.4, None)] == ["3.42×", "34.2×", "1,342×", "—"]


# ---- the benchmarks


@needs_kernels
def test_align_report() -> None:
    report = bench_align(["crosstask", "long"], HASTE)
    written = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert written["format"] == "graph2vid-bench"
    assert written["machine"]["processor"]
    assert written["machine"]["simd"]
    assert written["machine"]["load"] >= 0
    crosstask, long = written["cases"]
    assert {"name", "steps", "states", "ideals", "clips", "seconds", "ns_per_update"} <= set(crosstask)
    assert {"scan_ratio", "python_loop_ratio", "two_threads_ratio", "float64_scan_ratio"} <= set(crosstask)
    assert crosstask["features_off_ratio"] == crosstask["features_off_seconds"] / crosstask["without_features_seconds"]
    assert (crosstask["steps"], crosstask["states"], crosstask["clips"]) == (9, 77, 100)
    assert crosstask["ns_per_update"] == pytest.approx(crosstask["seconds"] / 7700 * 1e9)
    assert [part["clips"] for part in long["by_clips"]] == [5_000, 10_000, 20_000]
    assert "python_loop_ratio" not in long
    markdown = report.to_markdown()
    assert "`python -m benchmarks align --only crosstask,long` on " in markdown
    assert "| crosstask " in markdown


@needs_kernels
def test_many_videos_are_measured_together() -> None:
    found = bench_align_module.measure_case(Case("few", threads(2, 2), 20, videos=3), HASTE)
    assert found["videos"] == 3
    assert found["ns_per_update"] == pytest.approx(found["seconds"] / (found["states"] * 20 * 3) * 1e9)
    assert "python_loop_seconds" not in found


@needs_kernels
def test_what_is_timed_with_features_off_is_the_plain_answer() -> None:
    for case in (Case("one", threads(2, 2), 20), Case("few", threads(2, 2), 20, videos=3)):
        plain = bench_align_module._without_features(case)()
        off = bench_align_module._features_off(case)()
        for one, other in zip(plain, off if case.videos > 1 else [off], strict=True):
            assert one.cost == other.cost and one.labels.tolist() == other.labels.tolist()
            assert other.options == one.options | {"method": other.options["method"]}


@needs_kernels
def test_memory_is_measured_in_a_process_of_its_own() -> None:
    ballast = np.ones(30_000_000)  # 240 MB here must not show there
    found = measure_apart(8, 20)
    assert found["states"] == 8 * 2**7
    assert 10 * 2**20 < found["peak_bytes"] < ballast.nbytes


@needs_kernels
def test_tsort_report() -> None:
    report = bench_tsort(["crosstask", "bag14"], HASTE)
    crosstask, fourteen = report.cases
    assert crosstask["ideals_bounds"] == [8, 60]
    assert fourteen["states"] == TSortGraph.compile(bag(14)).n_states
    assert fourteen["numpy_ratio"] > 0


@needs_kernels
def test_anytime_report() -> None:
    (case,) = bench_anytime(["clear"], procedures=2).cases
    for one in case["videos"]:
        assert 35 <= one["steps"] <= 60
        assert one["gap"] == 0
        assert one["expanded"] > 0
        assert one["aligned"] > one["argmax"]


@needs_kernels
def test_extended_report() -> None:
    small = Case("small", threads(2, 2), 30)
    report = bench_extended(["repeats and durations"], Effort(0.01, 1), case=small)
    assert [case["dtype"] for case in report.cases] == ["float32", "float64"]
    assert all(case["arcs"] > case["plain_states"] == small.tsort.n_states for case in report.cases)
    assert "repeats and durations" in report.to_markdown()


@needs_kernels
def test_stream_report() -> None:
    (case,) = bench_stream(["plain"], clips=40).cases
    assert case["states"] == TSortGraph.compile(salads()).n_states
    assert case["seconds"] >= case["push_seconds"] > 0


@needs_kernels
def test_parser_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPH2VID_DATA", "nowhere")
    report = bench_parser(["learned"], HASTE)
    (learned,) = report.cases
    assert learned["ratio"] == pytest.approx(learned["numpy_seconds"] / learned["seconds"])
    assert "5 procedures" in report.to_markdown()


@needs_kernels
def test_brute_report() -> None:
    report = bench_peers(["brute"], HASTE)
    assert len(report.cases) == 3
    for row in report.cases:
        assert row["sorts"] == 1680
        assert row["ratio"] == pytest.approx(row["brute_seconds"] / row["seconds"])
    assert "560×" in report.to_markdown()


# A package that stands in for a peer: it says what a peer says, and then answers.
STUB = """
import sys
from benchmarks.jobs import serve

if sys.argv[2] == "broken":
    sys.exit("no such job")


def make():
    print("a line that a package prints")
    return lambda: float(len([0.0] * 1_000_000))


serve(make, {"version": "9.9"})
"""


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let a stub stand in for every package but ours."""
    script, python = tmp_path / "stub.py", tmp_path / "python"
    script.write_text(STUB, encoding="utf-8")
    python.write_text(f'#!/bin/sh\nshift 2\nPYTHONPATH=. exec "{sys.executable}" "{script}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    monkeypatch.setattr(apart, "python_of", lambda name: sys.executable if name == "graph2vid" else str(python))


@pytest.mark.usefixtures("stub")
def test_job_is_asked_again_and_again() -> None:
    with apart.Job("aeon", "cost", 2, 3, **KEEP_NOTHING) as job:
        assert job.about["version"] == "9.9"
        assert job.about["cost"] == 1_000_000
        assert job.about["process_bytes"] > 1_000_000
        assert job.about["bytes"] is None or job.about["bytes"] > 7_000_000
        assert all(0 < job.best(0.001) < 1 for _ in range(3))


@pytest.mark.usefixtures("stub")
def test_job_that_ends_early_says_why() -> None:
    with pytest.raises(apart.JobError, match="no such job") as caught, apart.Job("aeon", "broken", 2, 3):
        pass
    assert caught.value.args[0] == "aeon"


@needs_kernels
@pytest.mark.usefixtures("stub")
def test_peer_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "GROUNDS", peers.GROUNDS[:1])
    report = bench_peers(["aeon"], HASTE)
    assert [row["name"] for row in report.cases] == ["aeon, cost", "aeon, path"]
    for row in report.cases:
        assert row["version"] == "9.9"
        assert row["memory_clips"] == 20 * row["clips"]
        assert row["ratio"] == pytest.approx(row["peer_seconds"] / row["seconds"])
    assert "| aeon, path (9.9) |" in report.to_markdown()
    json.dumps(report.to_json(), allow_nan=False)


@needs_kernels
def test_different_sums_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    one = {"version": "9.9", "cost": 21.5, "seconds": 1.0, "bytes": None, "process_bytes": 1}
    found = {"peer": one, "ours": dict(one)}
    monkeypatch.setattr(peers, "race_apart", lambda *_: found)
    assert len(bench_peers(["torch-struct"]).cases) == 4
    found["ours"]["cost"] = 21.6
    with pytest.raises(Graph2VidError, match="torch-struct, linear chain cost: the costs differ"):
        bench_peers(["torch-struct"])


@pytest.mark.parametrize("length", ["linear", "semi-Markov"])
def test_potentials_are_those_of_a_chain(length: str) -> None:
    steps, clips = 3, 5
    match, sums = jobs.match_costs(steps, clips), []
    for cuts in itertools.combinations(range(1, clips), steps - 1):
        borders = (0, *cuts, clips)
        cost = sum(match[i, borders[i] : borders[i + 1]].sum() for i in range(steps))
        if length == "semi-Markov":
            cost += sum(jobs.length_costs()[borders[i + 1] - borders[i] - 1] for i in range(steps))
        sums.append(-cost)
    if length == "linear":
        potentials = jobs.linear_potentials(steps, clips)
        forward = np.zeros(steps)
        for clip in potentials:
            forward = np.logaddexp.reduce(clip + forward, axis=1)
    else:
        potentials = jobs.semi_markov_potentials(steps, clips)
        at = [np.zeros(steps), *(np.full(steps, -np.inf) for _ in range(clips))]
        for start in range(clips):
            for end in range(start + 1, clips + 1):
                step = np.logaddexp.reduce(potentials[start, end - start] + at[start], axis=1)
                at[end] = np.logaddexp(at[end], step)
        forward = at[clips]
    assert np.logaddexp.reduce(forward) == pytest.approx(np.logaddexp.reduce(sums))


@needs_kernels
@pytest.mark.parametrize("peer", ["dtaidistance", "kaldifst"])
def test_peers_of_the_extra(peer: str) -> None:
    pytest.importorskip(peer)
    report = bench_peers([peer], HASTE)
    assert len(report.cases) == sum(peer == contest[0] for ground in peers.GROUNDS for contest in ground.contests)
    assert all(row["ratio"] > 0 for row in report.cases)


@needs_kernels
def test_missing_peer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str, *_: object) -> None:
        raise apart.JobError(package, f"ModuleNotFoundError: No module named {package!r}")

    monkeypatch.setattr(peers, "race_apart", missing)
    report = bench_peers(["k2"], HASTE)
    assert report.cases == ({"name": "k2", "peer": "k2", "version": None, "what": "not installed"},)
    assert "not installed" in report.to_markdown()


@needs_kernels
def test_failure_of_ours_is_no_missing_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise apart.JobError("graph2vid", "ValueError: no")

    monkeypatch.setattr(peers, "race_apart", broken)
    with pytest.raises(Graph2VidError, match="graph2vid failed beside k2: ValueError: no"):
        bench_peers(["k2"], HASTE)


def test_without_kernels_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import machine

    monkeypatch.setattr(machine, "native", lambda: None)
    for bench in (bench_align, bench_tsort, bench_peers):
        with pytest.raises(Graph2VidError, match="compiled kernels"):
            bench()


@needs_kernels
def test_unknown_case_is_refused() -> None:
    with pytest.raises(InputError, match="unknown case 'bag99'; known: crosstask"):
        bench_align(["bag99"])


@needs_kernels
def test_command(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import tsort

    monkeypatch.setattr(tsort, "Effort", lambda **_: HASTE)
    files = tmp_path / "bench.json", tmp_path / "bench.md"
    arguments = ["--only", "crosstask, threads4x4", "--json", str(files[0]), "--markdown", str(files[1])]
    assert main(["tsort", *arguments]) == 0
    assert "crosstask" in capfd.readouterr().out
    written = json.loads(files[0].read_text(encoding="utf-8"))
    assert [case["name"] for case in written["cases"]] == ["crosstask", "threads4x4"]
    assert written["command"] == "python -m benchmarks tsort --only crosstask,threads4x4"
    assert "| threads4x4 " in files[1].read_text(encoding="utf-8")

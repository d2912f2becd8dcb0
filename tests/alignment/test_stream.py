"""Streams against the alignment of the whole video, and against every label sequence of the clips so far."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from graph2vid.alignment import Stream, align
from graph2vid.errors import InfeasibleError, InputError
from graph2vid.flow import FlowGraph
from graph2vid.selfcheck import Case, make_case
from graph2vid.selfcheck.enumerate import all_sequences, count_sequences, segments_cost
from sequences import double_case, legal_sequences


def cases(seed: int, count: int) -> list[Case]:
    """Cases without what streams do not know: durations and constraints."""
    drawn = (double_case(seed, index) for index in itertools.count())
    fit = (case for case in drawn if case.durations is None and not case.rules)
    return list(itertools.islice(fit, count))


def stream_of(case: Case, lag: int | None = None) -> Stream:
    return Stream(case.flow, case.costs.skip, lag=lag, repeat=case.repeat, violation=case.violation, gamma=case.gamma)


def test_with_a_lag_that_covers_the_video_it_is_the_alignment() -> None:
    checked = 0
    for case in cases(7, 400):
        match, drop, skip = case.costs
        for lag in (None, match.shape[1]):
            stream = stream_of(case, lag)
            try:
                for clip in range(match.shape[1]):
                    assert stream.push(match[:, clip], drop[clip]) is None
                found = stream.finish()
            except InfeasibleError:
                with pytest.raises(InfeasibleError):
                    align(case.flow, match, drop, skip, repeat=case.repeat, violation=case.violation)
                continue
            expected = align(case.flow, match, drop, skip, repeat=case.repeat, violation=case.violation)
            assert found.cost == pytest.approx(expected.cost, abs=1e-9)
            if case.exact:  # sums are exact: among equals the same labels
                assert found.labels.tolist() == expected.labels.tolist(), case
                checked += 1
    assert checked > 200


def test_beliefs_are_those_of_enumeration_of_the_clips_so_far() -> None:
    checked = 0
    for case in cases(11, 150):
        match, drop, skip = case.costs
        n_steps, n_clips = match.shape
        skips = np.full(n_steps, np.inf) if skip is None else skip
        skips = np.where(np.isin(range(n_steps), case.flow.optional), np.minimum(skips, 0.0), skips)
        returns = np.full(n_steps, np.inf) if case.repeat is None else case.repeat
        free = np.zeros(n_steps)
        if case.flow.alternatives:  # what a beginning costs depends on the branches that are still open
            continue
        stream = stream_of(case)
        ancestors = case.flow.sure.ancestors
        for clip in range(n_clips):
            try:
                stream.push(match[:, clip], drop[clip])
            except InfeasibleError:
                break
            table = np.vstack([match, drop])[:, : clip + 1]
            weight, done, costs = np.zeros(n_steps + 1), np.zeros(n_steps), {}
            for labels, runs in all_sequences(n_steps, clip + 1):
                shown = {step for step, _, _ in runs}
                begun = {k for k in range(n_steps) if any(k == s or ancestors[s] >> k & 1 for s in shown)}
                # Steps that may still come are not charged yet.
                charged = segments_cost(
                    case.flow,
                    runs,
                    np.where(np.isin(range(n_steps), list(begun)), skips, free),
                    returns,
                    None,
                    case.violation,
                )
                cost = float(table[list(labels), range(clip + 1)].sum()) + charged
                costs[labels] = cost
                mass = np.exp(-cost / case.gamma) if cost < np.inf else 0.0
                weight[labels[-1]] += mass
                done[list(begun - {labels[-1]})] += mass
            assert costs[tuple(stream.labels.tolist())] == pytest.approx(min(costs.values())), case
            assert stream.posterior == pytest.approx(weight / weight.sum(), abs=1e-7), case
            assert stream.done == pytest.approx(done / weight.sum(), abs=1e-7), case
            assert stream.next.min() >= 0 and stream.next.sum() <= 1 + 1e-9
            checked += 1
    assert checked > 150


def test_final_labels_are_those_of_the_clips_until_then() -> None:
    random = np.random.default_rng(2)
    flow = FlowGraph.from_edges(["a", "b", "c", "d"], [(0, 2), (1, 2), (2, 3)])
    match, drop = random.normal(size=(4, 30)), random.normal(size=30)
    for lag in (0, 3, 8):
        stream, until_then = Stream(flow, 2.0, lag=lag, repeat=1.0), Stream(flow, 2.0, repeat=1.0)
        final = []
        for clip in range(30):
            label = stream.push(match[:, clip], drop[clip])
            until_then.push(match[:, clip], drop[clip])
            if clip >= lag:
                assert label == until_then.labels[clip - lag]
                final.append(label)
            assert len(stream.labels) == clip + 1 and stream.labels[: len(final)].tolist() == final
        found = stream.finish()
        assert found.labels[: len(final)].tolist() == final
        assert len(found.labels) == 30


def test_what_is_likely_next() -> None:
    stream = Stream(FlowGraph.from_edges(["a", "b", "c"], [(0, 2), (1, 2)]))
    assert stream.next == pytest.approx([0.5, 0.5, 0.0])
    assert stream.posterior == pytest.approx([0, 0, 0, 1])
    stream.push([0.0, 50.0, 50.0], 50.0)
    assert stream.posterior == pytest.approx([1, 0, 0, 0], abs=1e-6)
    assert stream.next == pytest.approx([0, 1, 0], abs=1e-6)
    assert stream.done == pytest.approx([0, 0, 0], abs=1e-6)
    stream.push([50.0, 0.0, 50.0], 50.0)
    assert stream.done == pytest.approx([1, 0, 0], abs=1e-6)
    assert stream.next == pytest.approx([0, 0, 1], abs=1e-6)
    assert stream.labels.tolist() == [0, 1]
    assert "2 clips" in repr(stream)


def test_bad_input_loses_nothing() -> None:
    stream = Stream(FlowGraph.chain(["a", "b"]))
    with pytest.raises(InputError, match="lag must be"):
        Stream(FlowGraph.chain(["a"]), lag=-1)
    with pytest.raises(InputError, match="FlowGraph"):
        Stream("soup")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no clips"):
        stream.finish()
    with pytest.raises(InputError, match="each of the 2 steps"):
        stream.push([1.0], 1.0)
    with pytest.raises(InputError, match="finite"):
        stream.push([1.0, np.nan], 1.0)
    with pytest.raises(InputError, match="one cost"):
        stream.push([1.0, 1.0], [1.0, 2.0])  # type: ignore[arg-type]
    stream.push([0.0, 1.0], 1.0)
    with pytest.raises(InfeasibleError, match="clip 1"):
        stream.push([np.inf, np.inf], np.inf)
    with pytest.raises(InfeasibleError, match="1 clips, but 2 steps"):
        stream.finish()
    stream.push([1.0, 0.0], 1.0)
    assert stream.finish().labels.tolist() == [0, 1]
    with pytest.raises(InputError, match="finished"):
        stream.push([1.0, 1.0], 1.0)


def test_background_inside_steps() -> None:
    """Unless contiguous: the labels of the cheapest alignment of the clips so far, and their posterior."""
    checked = whole = 0
    for index in range(200):
        case = make_case(21, index)
        (n_steps, n_clips), costs = case.costs.match.shape, case.costs.astype(np.float64)
        if count_sequences(n_steps, n_clips) > 2000:
            continue
        skips = np.full(n_steps, np.inf) if costs.skip is None else costs.skip
        stream = Stream(case.flow, costs.skip, contiguous=False, gamma=case.gamma)
        try:
            for clip in range(n_clips):
                stream.push(costs.match[:, clip], costs.drop[clip])
                known = legal_sequences(case, False, clip + 1)
                table = np.vstack([costs.match, costs.drop])[:, : clip + 1]
                totals = np.array([table[list(labels), range(clip + 1)].sum() for labels in known])
                for at, labels in enumerate(known):  # what was passed over is charged, what may still come is not
                    passed = {k for k in range(n_steps) for s in labels if s >= 0 and case.flow.ancestors[s] >> k & 1}
                    totals[at] += sum(skips[step] for step in passed - set(labels))
                weight = np.exp(-(totals - totals.min()) / case.gamma)
                last = np.array([labels[-1] for labels in known]) % (n_steps + 1)
                expected = np.bincount(last, weight, n_steps + 1) / weight.sum()
                assert stream.posterior == pytest.approx(expected, abs=1e-7), case
                assert totals[known.index(tuple(stream.labels.tolist()))] == pytest.approx(totals.min()), case
                checked += 1
            found = stream.finish()
        except InfeasibleError:
            with pytest.raises(InfeasibleError):
                align(case.flow, *costs, contiguous=False)
            continue
        expected_labels = align(case.flow, *costs, contiguous=False).labels
        assert found.labels.tolist() == expected_labels.tolist() or not case.exact
        late = Stream(case.flow, costs.skip, contiguous=False, lag=0)
        for clip in range(n_clips):
            assert late.push(costs.match[:, clip], costs.drop[clip]) is not None
        assert late.finish().cost == pytest.approx(found.cost)
        whole += 1
    assert checked > 150 and whole > 40
    with pytest.raises(InputError, match="need contiguous=True"):
        Stream(FlowGraph.chain(["a"]), repeat=1.0, contiguous=False)

"""The methods on small datasets where the right answer is known, and how they are run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from graph2vid.datasets import Split
from graph2vid.datasets.dataset import Evidence, Recording
from graph2vid.errors import InputError
from graph2vid.evaluate import EvaluationOptions
from graph2vid.evaluate.engine import Results, evaluate_dataset, in_folds, without_unmapped
from graph2vid.evaluate.method_runner import NOT_EXACT
from graph2vid.evaluate.methods import Training, instructions_in_order
from toys import make_dataset, make_recording, make_task, spread

OWN = EvaluationOptions(folds=0, drop="constant:1")


def acc_of(results: Results) -> dict[str, list[float]]:
    return {name: [row["acc"] for row in run.metrics.values()] for name, run in results.methods.items()}


def test_methods_on_a_video_in_another_order() -> None:
    task = make_task(expert=[(0, 2), (1, 2), (2, 3)])
    found = acc_of(evaluate_dataset(make_dataset({"a": spread([1, 0, 2, 3])}, task), options=OWN))
    assert list(found) == ["argmax", "bag", "linear", "written", "graph:expert", "true-order", "true-order-repeats"]
    assert {name for name, values in found.items() if values == [1.0]} == set(found) - {"linear"}
    assert found["linear"][0] < 1


def test_graph_helps_where_the_evidence_misleads() -> None:
    labels = spread([1, 0, 2, 3])
    dataset = make_dataset({"a": labels}, make_task(expert=[(0, 2), (1, 2), (2, 3)]), height=2.0)
    shown = {"a": [1, 1, 1, 1, 3, 0, 0, 0, 2, 2, 2, 2, 3, 3, 3, 3]}  # serving seems to begin too early
    found = acc_of(evaluate_dataset(replace(dataset, evidence=replace(dataset.evidence, shown=shown)), options=OWN))
    assert found["graph:expert"][0] >= max(found["argmax"][0], found["bag"][0], found["linear"][0])


def test_background_class_joins_the_argmax() -> None:
    labels = [-1, -1, *spread([0, 1]), -1, 2, 3]
    plain = evaluate_dataset(make_dataset({"a": labels}, background=False), options=OWN)
    assert "argmax+background" not in plain.methods
    found = evaluate_dataset(make_dataset({"a": labels}, background=True), options=OWN)
    assert found.methods["argmax+background"].labels[0].tolist() == labels
    assert found.methods["argmax"].labels[0].min() >= 0
    assert found.methods["argmax+background"].metrics[0]["mof"] == 1.0


@dataclass(frozen=True)
class Odds:
    """Evidence as narration gives it: log-odds against background, and skip costs."""

    shown: tuple[int, ...]

    def __call__(self, recording: Recording) -> Evidence:
        odds = np.where(np.array(self.shown) == np.arange(4)[:, np.newaxis], 2.0, -2.0)
        return Evidence(odds, np.zeros(len(self.shown)), "log_odds", np.array([9.0, 9.0, 9.0, -1.0]))


def test_log_odds_come_with_their_own_policies() -> None:
    labels = [-1, 0, 0, -1, 1, 1, 2, -1]
    dataset = replace(make_dataset({"a": labels}), evidence=Odds(tuple(labels)))
    found = evaluate_dataset(dataset, ["argmax+background", "linear"], EvaluationOptions(folds=0))
    for run in found.methods.values():
        assert run.labels[0].tolist() == labels  # the last step is left out
    assert found.videos[0].costs.options["preset"] == "log_odds"
    every = (
        evaluate_dataset(dataset, ["linear"], EvaluationOptions(folds=0, skip="constant:inf"))
        .methods["linear"]
        .labels[0]
    )
    assert 3 in every.tolist()
    paper = evaluate_dataset(dataset, ["linear"], EvaluationOptions(folds=0, preset="paper"))
    assert paper.videos[0].costs.options["match"] == "likelihood"


@pytest.mark.parametrize("method", ["true-order", "true-order-repeats"])
def test_true_order_leaves_out_no_step_that_is_shown(method: str) -> None:
    labels = [-1, 0, 0, -1, 1, 1, 3, -1]
    # The evidence points elsewhere in the last clip but one, and asks to leave the last step out.
    dataset = replace(make_dataset({"a": labels}), evidence=Odds((-1, 0, 0, -1, 1, 1, 2, -1)))
    found = evaluate_dataset(dataset, ["linear", method], EvaluationOptions(folds=0))
    assert 3 not in found.methods["linear"].labels[0]
    shown = found.methods[method].labels[0]
    assert set(shown.tolist()) == {-1, 0, 1, 3}
    assert found.methods[method].plans[0].rows.tolist() == [0, 1, 3]


def test_removed_steps_take_their_skip_costs_with_them() -> None:
    task = make_task(correspondence=((0,), (2,), (3,), ()))
    dataset = make_dataset({"a": [0, 0, 1, 1, 2, 2]}, task)
    dataset = without_unmapped(replace(dataset, evidence=Odds((0, 0, 2, 2, 3, 3))))
    evidence = dataset.evidence(dataset.recordings[0])
    assert evidence.similarity.shape == (3, 6) and evidence.skip is not None
    assert evidence.skip.tolist() == [9.0, 9.0, -1.0]


def test_true_order_takes_the_steps_that_are_there() -> None:
    labels = spread([2, 0, 2])
    found = evaluate_dataset(make_dataset({"a": labels}), ["true-order", "true-order-repeats"], OWN)
    assert set(found.methods["true-order"].labels[0].tolist()) <= {-1, 0, 2}
    assert found.methods["true-order"].plans[0].rows.tolist() == [2, 0]
    assert found.methods["true-order-repeats"].plans[0].rows.tolist() == [2, 0, 2]
    assert found.methods["true-order-repeats"].labels[0].tolist() == labels


def test_true_order_of_a_video_without_steps_is_background() -> None:
    found = evaluate_dataset(make_dataset({"a": [-1] * 6}), ["true-order"], OWN)
    assert found.methods["true-order"].labels[0].tolist() == [-1] * 6
    assert np.isnan(found.methods["true-order"].metrics[0]["acc"])


def test_costs_are_computed_once_per_video(monkeypatch: pytest.MonkeyPatch) -> None:
    from graph2vid.evaluate import method_runner

    calls = []
    real = method_runner.costs_from_arrays
    monkeypatch.setattr(method_runner, "costs_from_arrays", lambda **given: calls.append(1) or real(**given))
    evaluate_dataset(make_dataset({"a": spread([0, 1, 2, 3]), "b": spread([1, 0, 2, 3])}), options=OWN, workers=1)
    assert len(calls) == 2


# -- instructions and dataset steps --------------------------------------------------------------------------

INSTRUCTED = make_task(
    steps=("wash", "cut", "mix", "serve"),
    procedure=("wash and cut", "preheat", "mix", "stir on"),
    correspondence=((0,), (0,), (2, 3), ()),
)


def test_steps_that_share_an_instruction_are_one_class_and_those_without_are_missed() -> None:
    labels = spread([0, 1, 2, 3])
    results = evaluate_dataset(make_dataset({"a": labels}, INSTRUCTED), ["true-order"], OWN)
    run = results.methods["true-order"]
    assert run.plans[0].rows.tolist() == [0, 2, 3]
    # The first two steps are one class; the third may be either of its instructions; the fourth cannot be had.
    assert run.metrics[0]["acc"] == pytest.approx(0.75)
    assert set(run.labels[0].tolist()) <= {-1, 0, 2, 3}


def test_unmapped_steps_are_removed_on_request() -> None:
    task = make_task(
        procedure=INSTRUCTED.procedure, correspondence=INSTRUCTED.correspondence, expert=[(0, 1), (1, 2), (2, 3)]
    )
    dataset = make_dataset({"a": spread([0, 1, 2, 3])}, task)
    results = evaluate_dataset(dataset, ["graph:expert"], EvaluationOptions(folds=0, drop_unmapped=True))
    (kept,) = results.dataset.tasks.values()
    assert kept.procedure == ("wash and cut", "mix", "stir on")
    assert kept.correspondence == ((0,), (0,), (1, 2), ())
    assert kept.flows["expert"].edges == ((0, 1), (1, 2))
    assert results.videos[0].costs.match.shape == (3, 16)
    assert 1 in evaluate_dataset(dataset, ["graph:expert"], OWN).methods["graph:expert"].labels[0]


def test_instructions_in_order_come_once() -> None:
    assert instructions_in_order(INSTRUCTED, [3, 2, 0, 1]) == (2, 3, 0)


# -- what is learnt ------------------------------------------------------------------------------------------

ORDERS = [[0, 1, 2, 3], [1, 0, 2, 3], [0, 1, 2, 3], [1, 0, 2, 3], [0, 1, 2, 3], [1, 0, 2, 3]]


def test_graph_and_linear_order_come_from_the_training_part_alone() -> None:
    videos = {f"v{at}": spread(order) for at, order in enumerate(ORDERS)}
    videos["test"] = spread([3, 2, 1, 0])  # would contradict everything, were it learnt from
    split = Split("1", tuple(f"v{at}" for at in range(6)), ("test",))
    dataset = make_dataset(videos, splits=[split], name="salads50")
    results = evaluate_dataset(dataset)
    assert [video.recording.id for video in results.videos] == ["test"]
    assert results.methods["graph:mined"].plans[0].flow.edges == ((0, 2), (1, 2), (2, 3))
    assert results.methods["linear"].plans[0].rows.tolist() == [0, 1, 2, 3]


def test_mean_position_orders_the_linear_procedure() -> None:
    videos = {"a": spread([2, 1, 0]), "b": spread([2, 0, 1]), "c": spread([2, 1, 0])}
    dataset = make_dataset(videos, splits=[Split("1", ("a", "b", "c"), ("c",))])
    training = Training(dataset, "mean-position")
    task = dataset.tasks["salad"]
    # c is tested, so it is not learnt from; steps never seen (3) come last, ties as listed.
    assert training.linear_order(task, dataset.splits[0]).tolist() == [2, 0, 1, 3]
    assert training.linear_order(task, None).tolist() == [0, 1, 2, 3]
    assert Training(dataset, "listed").linear_order(task, dataset.splits[0]).tolist() == [0, 1, 2, 3]


def test_folds_test_every_video_once_with_the_others() -> None:
    dataset = make_dataset({f"v{at}": spread(order) for at, order in enumerate(ORDERS)})
    splits = in_folds(dataset, 3)
    assert sorted(video for split in splits for video in split.test) == sorted(f"v{at}" for at in range(6))
    assert all(not set(split.train) & set(split.test) and len(split.train) == 4 for split in splits)
    assert len(evaluate_dataset(dataset, ["linear"], EvaluationOptions(folds=3)).videos) == 6


def test_a_video_in_several_test_splits_counts_once() -> None:
    videos = {"a": spread([0, 1, 2, 3]), "b": spread([1, 0, 2, 3])}
    splits = [Split("1", ("b",), ("a",)), Split("2", ("b",), ("a",))]
    results = evaluate_dataset(make_dataset(videos, splits=splits), ["bag"], OWN)
    assert [(video.recording.id, video.split and video.split.name) for video in results.videos] == [("a", "1")]


# -- running -------------------------------------------------------------------------------------------------


def many_videos(count: int = 20) -> dict[str, list[int]]:
    random = np.random.default_rng(3)
    return {f"v{at}": spread(random.permutation(4).tolist(), 3) for at in range(count)}


def test_results_do_not_depend_on_the_workers() -> None:
    dataset = make_dataset(many_videos(), make_task(expert=[(0, 3)]), noise=3.0)
    one, two = (evaluate_dataset(dataset, workers=workers) for workers in (1, 2))
    for name, run in one.methods.items():
        assert run.metrics == two.methods[name].metrics
        assert all((run.labels[at] == two.methods[name].labels[at]).all() for at in run.labels)


def test_procedures_beyond_the_limit_are_not_exact() -> None:
    dataset = make_dataset(many_videos(3), make_task(expert=[(0, 1), (1, 2), (2, 3)]))
    results = evaluate_dataset(dataset, options=EvaluationOptions(folds=0, limit=8))
    assert results.methods["bag"].absent == dict.fromkeys(range(3), NOT_EXACT)
    assert not results.methods["bag"].metrics
    assert len(results.methods["graph:expert"].metrics) == 3
    assert results.common == [0, 1, 2]


def test_comparisons_are_made_on_common_videos() -> None:
    small, large = make_task("small", expert=[(0, 1)]), make_task("large", tuple("abcdef"), expert=[(0, 1), (1, 2)])
    one = make_dataset({"a": spread([0, 1, 2, 3])}, small)
    other = make_dataset({"b": spread([0, 1, 2, 3, 4, 5])}, large)
    both = replace(
        one,
        tasks={**one.tasks, **other.tasks},
        recordings=one.recordings + other.recordings,
        evidence=replace(
            one.evidence,
            shown={**one.evidence.shown, **other.evidence.shown},
            n_steps={"small": 4, "large": 6},
        ),
    )
    results = evaluate_dataset(both, options=EvaluationOptions(folds=0, limit=40))
    assert results.methods["bag"].absent == {1: NOT_EXACT}
    assert results.common == [0]
    assert len(results.only(lambda video: video.task.id == "large").videos) == 1


def test_too_few_clips_are_named_and_passed_over_on_request() -> None:
    dataset = make_dataset({"good": spread([0, 1, 2, 3]), "short": [0, 1]})
    with pytest.raises(InputError, match="video short: 2 clips cannot show 4 steps"):
        evaluate_dataset(dataset, options=OWN)
    results = evaluate_dataset(dataset, options=OWN, skip_bad=True)
    assert [video.recording.id for video in results.videos] == ["good"]
    assert len(results.problems) == 1
    assert len(evaluate_dataset(dataset, ["linear"], EvaluationOptions(folds=0, skip="percentile")).videos) == 2


def test_evidence_of_the_wrong_shape_is_named() -> None:
    dataset = make_dataset({"a": spread([0, 1, 2, 3])})
    dataset = replace(dataset, recordings=(make_recording("a", [0, 1, 2, 3, 3]),))
    with pytest.raises(InputError, match="video a: the evidence has shape"):
        evaluate_dataset(dataset, options=OWN)


def test_presets_and_temperatures() -> None:
    dataset = make_dataset({"a": spread([0, 1, 2, 3])})
    paper = evaluate_dataset(dataset, ["linear"], EvaluationOptions(folds=0)).videos[0].costs.options
    assert (paper["match"], paper["drop"], paper["temperature"]) == ("likelihood", "percentile:30", 1.0)
    released = (
        evaluate_dataset(dataset, ["linear"], EvaluationOptions(preset="released", folds=0)).videos[0].costs.options
    )
    assert (released["match"], released["temperature"]) == ("raw", 10.0)
    with pytest.raises(InputError, match="unknown preset"):
        evaluate_dataset(dataset, ["linear"], EvaluationOptions(preset="none"))


def test_wrong_names_are_refused_with_the_known_ones() -> None:
    dataset = make_dataset({"a": spread([0, 1, 2, 3])})
    with pytest.raises(InputError, match="no method 'graphs' here; there are: argmax"):
        evaluate_dataset(dataset, ["graphs"], OWN)
    with pytest.raises(InputError, match="no method 'graph' here"):
        evaluate_dataset(dataset, ["graph"], OWN)
    with pytest.raises(InputError, match="workers must be a whole number of at least 1"):
        evaluate_dataset(dataset, workers=0)
    with pytest.raises(InputError, match="no videos"):
        evaluate_dataset(replace(dataset, recordings=()))


def test_progress_is_told() -> None:
    told: list[tuple[str, int, int]] = []
    dataset = make_dataset({"a": spread([0, 1, 2, 3])})
    evaluate_dataset(dataset, ["linear"], OWN, progress=lambda *now: told.append(now))
    assert ("evidence and costs", 1, 1) in told
    assert ("linear", 1, 1) in told

"""Losses: values and gradients against the reference, what they accept and what they refuse."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from benchmarks.torch_reference import reference_cost  # noqa: E402
from graph2vid.alignment import Durations, posterior  # noqa: E402
from graph2vid.errors import Graph2VidError, InfeasibleError, InputError  # noqa: E402
from graph2vid.evidence.costs import costs_from_arrays  # noqa: E402
from graph2vid.flow import FlowGraph  # noqa: E402
from graph2vid.learn import (  # noqa: E402
    ClusteringLoss,
    DropDTWLoss,
    GraphDropDTWLoss,
    ProcedureLoss,
    operator,
    posteriors,
    soft_cost,
)
from graph2vid.tsort import TSortGraph  # noqa: E402

FLOWS = (
    FlowGraph.from_edges(list("abcd"), [(0, 2), (1, 2), (2, 3)]),
    FlowGraph.bag(list("abc")),
    FlowGraph.chain(list("ab")),
)
TSORTS = [TSortGraph.compile(flow) for flow in FLOWS]
LENGTHS = [7, 9, 4]


def batch(seed: int = 0, dtype: Any = torch.float64) -> tuple[Any, Any, Any]:
    generator = torch.Generator().manual_seed(seed)
    match = torch.rand(3, 4, 9, generator=generator, dtype=dtype, requires_grad=True)
    drop = torch.rand(3, 9, generator=generator, dtype=dtype, requires_grad=True)
    skip = torch.rand(3, 4, generator=generator, dtype=dtype, requires_grad=True)
    return match, drop, skip


@pytest.mark.parametrize("smoothing", ["softmin", "smoothmin"])
@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize("skips", [True, False])
def test_gradients_by_finite_differences(smoothing: str, contiguous: bool, skips: bool) -> None:
    def cost(match: Any, drop: Any, skip: Any = None) -> Any:
        return soft_cost(TSORTS, match, drop, skip, LENGTHS, gamma=0.5, smoothing=smoothing, contiguous=contiguous)

    inputs = batch()
    assert torch.autograd.gradcheck(cost, inputs if skips else inputs[:2])


@pytest.mark.parametrize("smoothing", ["softmin", "smoothmin"])
@pytest.mark.parametrize("contiguous", [True, False])
def test_batches_give_the_reference_video_by_video(smoothing: str, contiguous: bool) -> None:
    options: dict[str, Any] = {"gamma": 0.3, "smoothing": smoothing, "contiguous": contiguous}
    match, drop, _ = batch(1)
    found = soft_cost(TSORTS, match, drop, None, LENGTHS, **options)
    for at, (tsort, length) in enumerate(zip(TSORTS, LENGTHS, strict=True)):
        one = reference_cost(tsort, match[at, : tsort.n_steps, :length], drop[at, :length], **options)
        assert found[at].item() == pytest.approx(one.item(), abs=1e-10)


def test_padding_changes_nothing() -> None:
    match, drop, _ = batch(2)
    weights = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
    (soft_cost(TSORTS, match, drop, None, LENGTHS) * weights).sum().backward()
    wider, longer = match.detach().clone(), drop.detach().clone()
    for at, (tsort, length) in enumerate(zip(TSORTS, LENGTHS, strict=True)):
        wider[at, tsort.n_steps :] = torch.nan
        wider[at, :, length:] = torch.nan
        longer[at, length:] = torch.nan
    wider, longer = torch.nn.functional.pad(wider, (0, 5, 0, 2)), torch.nn.functional.pad(longer, (0, 5))
    wider.requires_grad_()
    longer.requires_grad_()
    (soft_cost(TSORTS, wider, longer, None, LENGTHS) * weights).sum().backward()
    assert torch.equal(match.grad, wider.grad[:, :4, :9])
    assert torch.equal(drop.grad, longer.grad[:, :9])
    assert not wider.grad[:, 4:].any() and not wider.grad[:, :, 9:].any()
    for at, (tsort, length) in enumerate(zip(TSORTS, LENGTHS, strict=True)):
        assert not match.grad[at, tsort.n_steps :].any() and not match.grad[at, :, length:].any()


def test_a_second_derivative_is_refused() -> None:
    match, drop, _ = batch(3)
    cost = soft_cost(TSORTS, match, drop, None, LENGTHS).sum()
    with pytest.raises(Graph2VidError, match="no second derivative"):
        torch.autograd.grad(cost, match, create_graph=True)


@pytest.mark.parametrize("kind", ["grad", "vmap", "jacrev", "hessian"])
def test_transforms_of_torch_are_refused_in_one_line(kind: str) -> None:
    match, drop, _ = batch(3)
    features, steps = embeddings()
    for loss, argument in (
        (lambda match: soft_cost(TSORTS, match, drop, None, LENGTHS).sum(), match),
        (lambda match: posteriors(TSORTS, match, drop, None, LENGTHS).cost.sum(), match),
        (lambda features: GraphDropDTWLoss()(features, steps, FLOWS, LENGTHS), features),
        (lambda features: ProcedureLoss()(features, steps, FLOWS, LENGTHS), features),
    ):
        with pytest.raises(InputError, match=r"torch\.func"):
            getattr(torch.func, kind)(loss)(argument.detach()[None] if kind == "vmap" else argument.detach())
    with pytest.raises(InputError, match=r"torch\.func\.vmap is not for losses"):
        torch.func.vmap(lambda features: ClusteringLoss()(features, steps, LENGTHS))(features.detach()[None])


def test_forward_mode_is_refused_rather_than_left_out() -> None:
    match, drop, _ = batch(3)
    with pytest.raises(InputError, match="forward mode"):
        torch.func.jvp(lambda match: soft_cost(TSORTS, match, drop, None, LENGTHS), (match,), (match,))
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level(), pytest.raises(InputError, match="forward mode"):
        soft_cost(TSORTS, forward_ad.make_dual(match.detach(), match.detach()), drop.detach(), None, LENGTHS)


def test_complex_numbers_are_refused() -> None:
    match, drop, skip = batch(3)
    features, steps = embeddings()
    costs = {"match": match, "drop": drop, "skip": skip}
    for name, part in costs.items():
        for compute in (soft_cost, posteriors):
            with pytest.raises(InputError, match=f"^{name} must hold real numbers, not complex128$"):
                compute(TSORTS, **{**costs, name: part.to(torch.complex128)}, lengths=LENGTHS)
    with pytest.raises(InputError, match=r"^features must hold real numbers, not complex64$"):
        GraphDropDTWLoss()(features.to(torch.complex64), steps, FLOWS, LENGTHS)
    with pytest.raises(InputError, match=r"^steps must hold real numbers"):
        ClusteringLoss()(features, [steps[0].to(torch.complex64), *steps[1:]], LENGTHS)


def test_a_graph_that_is_kept_gives_the_same_again() -> None:
    match, drop, skip = batch(3)
    cost = soft_cost(TSORTS, match, drop, skip, LENGTHS)
    once, twice = (torch.autograd.grad(2 * cost.sum(), (match, skip), retain_graph=True) for _ in range(2))
    last = torch.autograd.grad(cost.sum(), (match, skip))
    for one, two, half in zip(once, twice, last, strict=True):
        assert torch.equal(one, two) and torch.equal(one, 2 * half)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(cost.sum(), match)


def test_without_a_backward_pass_no_gradient_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    match, drop, _ = batch(3)
    asked = []
    compute = operator.soft_costs
    monkeypatch.setattr(
        operator, "soft_costs", lambda *a, **how: (asked.append(how["gradient"]), compute(*a, **how))[1]
    )
    with torch.no_grad():
        soft_cost(TSORTS, match, drop, None, LENGTHS)
    soft_cost(TSORTS, match.detach(), drop.detach(), None, LENGTHS)
    soft_cost(TSORTS, match, drop, None, LENGTHS)
    assert asked == [False, False, True]


def test_what_was_asked_before_is_told_from_what_is_asked_now() -> None:
    match, drop, _ = batch(3)
    lengths = list(LENGTHS)
    before = soft_cost(TSORTS, match, drop, None, lengths, gamma=1)
    lengths[1] = 5
    after = soft_cost(TSORTS, match, drop, None, lengths, gamma=1)
    wanted = soft_cost(TSORTS[1:2], match[1:2], drop[1:2], None, torch.tensor([5]), gamma=1.0)
    assert torch.equal(before[::2], after[::2]) and before[1] != after[1] and after[1] == wanted[0]
    with pytest.raises(InputError, match="gamma"):
        soft_cost(TSORTS, match, drop, None, lengths, gamma=True)


def test_without_gradients_nothing_is_kept() -> None:
    match, drop, _ = batch(4)
    with torch.no_grad():
        assert not soft_cost(TSORTS, match, drop, None, LENGTHS).requires_grad


def test_half_precision_is_computed_in_float32() -> None:
    match, drop, _ = batch(5, torch.float32)
    exact = soft_cost(TSORTS, match.bfloat16().float(), drop.bfloat16().float(), None, LENGTHS)
    found = soft_cost(TSORTS, match.bfloat16(), drop.bfloat16(), None, LENGTHS)
    assert found.dtype == torch.float32 and torch.equal(found, exact)


@pytest.mark.parametrize("skips", [True, False])
def test_the_operator_can_be_compiled_in_one_piece(skips: bool) -> None:
    match, drop, skip = batch(6, torch.float32)

    def loss(match: Any, drop: Any, skip: Any) -> Any:
        return (2 * soft_cost(TSORTS, 3 * match, drop, skip if skips else None, LENGTHS)).sum()

    expected = torch.autograd.grad(loss(match, drop, skip), match)[0]
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    assert torch.allclose(torch.autograd.grad(compiled(match, drop, skip), match)[0], expected)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.allclose(torch.autograd.grad(compiled(match, drop, skip), match)[0], expected)


@pytest.mark.parametrize("loss", [GraphDropDTWLoss(), ProcedureLoss()])
def test_losses_can_be_compiled_in_several_pieces(loss: Any) -> None:
    features, steps = embeddings(dtype=torch.float32)
    features.requires_grad_()
    expected = torch.autograd.grad(loss(features, steps, TSORTS, LENGTHS), features)[0]
    for graphs in (TSORTS, [tsort.flow for tsort in TSORTS]):
        found = torch.compile(loss, backend="aot_eager")(features, steps, graphs, LENGTHS)
        assert torch.allclose(torch.autograd.grad(found, features)[0], expected, atol=1e-6)
    torch.compiler.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported):  # as the page on training says
        torch.compile(loss, backend="aot_eager", fullgraph=True)(features, steps, TSORTS, LENGTHS)


def embeddings(seed: int = 0, dtype: Any = torch.float64) -> tuple[Any, list[Any]]:
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(3, 9, 6, generator=generator, dtype=dtype, requires_grad=True)
    return features, [torch.randn(len(flow), 6, generator=generator, dtype=dtype) for flow in FLOWS]


@pytest.mark.parametrize("match", ["likelihood", "likelihood_bg", "raw"])
@pytest.mark.parametrize("drop", ["percentile:20", 1.5, "prototype", "prototype:30"])
def test_costs_are_those_of_grounding(match: str, drop: Any) -> None:
    features, steps = embeddings()
    steps[1] = torch.cat([steps[1][:2], steps[1][:1]])  # one step comes twice
    loss = GraphDropDTWLoss(match=match, drop=drop, temperature=0.2, dimension=6)
    found = loss.costs(features, steps, LENGTHS)
    for at, length in enumerate(LENGTHS):
        given = drop
        if loss.prototype is not None:
            given = ("prototype" if drop == "prototype" else "relative", loss.prototype.detach().numpy())
        expected = costs_from_arrays(
            clips=features[at, :length].detach().numpy(),
            steps=steps[at].numpy(),
            match=match,
            drop=given,
            temperature=0.2,
        )
        np.testing.assert_allclose(found[0][at, : len(steps[at]), :length].detach(), expected.match, atol=1e-6)
        np.testing.assert_allclose(found[1][at, :length].detach(), expected.drop, atol=1e-6)


def test_balanced_costs_divide_out_how_common_a_step_is() -> None:
    features, steps = embeddings()
    steps[1] = torch.cat([steps[1][:2], steps[1][:1]])  # one step comes twice
    plain, balanced = (
        GraphDropDTWLoss(match=match).costs(features, steps, LENGTHS)[0] for match in ("likelihood", "balanced")
    )
    for at, length in enumerate(LENGTHS):
        shares = torch.exp(-plain[at, : len(steps[at]), :length])
        expected = -torch.log(shares / shares.mean(1, keepdim=True))
        assert torch.allclose(balanced[at, : len(steps[at]), :length], expected)


def test_calling_every_clip_one_step_gains_nothing_when_balanced() -> None:
    flow, steps = FlowGraph.chain(["a", "b"]), torch.eye(2)
    mixed = torch.nn.functional.one_hot(torch.tensor([0] * 10 + [1] * 10)).float()
    collapsed = torch.nn.functional.one_hot(torch.tensor([0] * 19 + [1])).float()
    loss = {
        match: [GraphDropDTWLoss(match=match)(clips[None], [steps], [flow]).item() for clips in (mixed, collapsed)]
        for match in ("likelihood", "balanced")
    }
    assert loss["likelihood"][1] == pytest.approx(loss["likelihood"][0], abs=1e-3)  # it cannot tell them apart
    assert loss["balanced"][1] > loss["balanced"][0] + 0.3


def test_scores_are_compared_by_their_products() -> None:
    features, _ = embeddings()
    steps = [torch.eye(6, dtype=torch.float64)[: len(flow)] for flow in FLOWS]
    match, _ = GraphDropDTWLoss(match="raw", comparison="dot", temperature=1.0).costs(features, steps, LENGTHS)
    assert torch.allclose(match[0, :, :7], -features[0, :7, :4].T)
    with pytest.raises(InputError, match="unknown comparison 'sine'"):
        GraphDropDTWLoss(comparison="sine")


def test_the_loss_is_the_mean_cost_per_clip() -> None:
    features, steps = embeddings()
    loss = GraphDropDTWLoss()
    match, drop = loss.costs(features, steps, LENGTHS)
    costs = soft_cost(TSORTS, match, drop, None, LENGTHS)
    expected = (costs / torch.tensor(LENGTHS)).mean()
    assert loss(features, steps, FLOWS, LENGTHS).item() == pytest.approx(expected.item())
    total = GraphDropDTWLoss(normalise=False)(features, steps, FLOWS, LENGTHS)
    assert total.item() == pytest.approx(costs.mean().item())


def test_drop_dtw_is_the_case_of_a_chain() -> None:
    features, steps = embeddings()
    chains = [FlowGraph.chain([str(place) for place in range(len(flow))]) for flow in FLOWS]
    expected = GraphDropDTWLoss()(features, steps, chains, LENGTHS)
    assert DropDTWLoss()(features, steps, LENGTHS).item() == pytest.approx(expected.item())


def test_learning_brings_the_loss_down() -> None:
    features, steps = embeddings(7, torch.float32)
    loss = GraphDropDTWLoss(drop="prototype", dimension=6)
    moved = features.detach().clone().requires_grad_()
    optimiser = torch.optim.Adam([moved, *loss.parameters()], lr=0.05)
    values = []
    for _ in range(30):
        optimiser.zero_grad()
        value = loss(moved, steps, FLOWS, LENGTHS)
        value.backward()
        optimiser.step()
        values.append(value.item())
    assert values[-1] < 0.7 * values[0]


def test_autocast_leaves_the_recursion_alone() -> None:
    features, steps = embeddings(8, torch.float32)
    expected = GraphDropDTWLoss()(features, steps, FLOWS, LENGTHS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = GraphDropDTWLoss()(features, steps, FLOWS, LENGTHS)
    assert found.dtype == torch.float32 and found.item() == pytest.approx(expected.item())


def test_clustering_by_hand() -> None:
    features = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [9.0, 9.0]]])
    steps = [torch.tensor([[3.0, 0.0], [0.0, 1.0], [3.0, 0.0]])]  # the third is the first again
    sharp = ClusteringLoss(pool_temperature=1e-3)(features, steps, [2])
    assert sharp.item() == pytest.approx(0.0, abs=1e-6)
    even = ClusteringLoss(pool_temperature=1e6)(features, steps, [2])  # both pool to (1/2, 1/2)
    assert even.item() == pytest.approx(1.0, abs=1e-4)
    contrastive = ClusteringLoss(pool_temperature=1.0, contrastive=True)(features, steps, [2])
    weight = np.e / (np.e + 1)
    assert contrastive.item() == pytest.approx(np.log(1 + np.exp(1 - 2 * weight)), abs=1e-5)


def test_impossible_videos_are_named_or_left_out() -> None:
    features, steps = embeddings(9)
    lengths = [7, 2, 4]
    with pytest.raises(InfeasibleError, match="video 1 cannot show its procedure: it has 2 clips for 3 steps"):
        GraphDropDTWLoss()(features, steps, FLOWS, lengths)
    others = [0, 2]
    expected = GraphDropDTWLoss()(features[others], [steps[at] for at in others], [FLOWS[at] for at in others], [7, 4])
    loss = GraphDropDTWLoss(on_impossible="skip")(features, steps, FLOWS, lengths)
    assert loss.item() == pytest.approx(expected.item())
    loss.backward()
    assert torch.isfinite(features.grad).all() and not features.grad[1].any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lengths": [7, 9]}, "3 videos, but 2 lengths"),
        ({"lengths": [7, 10, 4]}, "video 1: 10 clips; lengths must be whole numbers from 1 to 9"),
        ({"lengths": [7, 6.5, 4]}, "video 1: 6.5 clips; lengths must be whole numbers"),
        ({"lengths": [7, float("nan"), 4]}, "video 1: nan clips"),
        ({"graphs": FLOWS[:2]}, "3 videos, but 2 graphs"),
        ({"graphs": (FLOWS[1], *FLOWS[1:])}, "video 0: 4 step embeddings for a graph of 3 steps"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, Any], message: str) -> None:
    features, steps = embeddings()
    with pytest.raises(InputError, match=message):
        GraphDropDTWLoss()(**{"features": features, "steps": steps, "graphs": FLOWS, "lengths": LENGTHS} | change)


def test_nan_in_features_names_the_video() -> None:
    features, steps = embeddings()
    spoilt = features.detach().clone()
    spoilt[2, 3, 1] = torch.nan
    with pytest.raises(InputError, match="video 2: its features hold NaN"):
        GraphDropDTWLoss()(spoilt, steps, FLOWS, LENGTHS)
    spoilt[2, 3, 1] = 0.0
    steps[1] = steps[1].clone()
    steps[1][0, 0] = torch.inf
    for loss, graphs in ((GraphDropDTWLoss(), [FLOWS]), (ClusteringLoss(), [])):
        with pytest.raises(InputError, match="video 1: its step embeddings hold NaN or infinite"):
            loss(spoilt, steps, *graphs, lengths=LENGTHS)


@pytest.mark.parametrize("contrastive", [False, True])
@pytest.mark.parametrize("match", ["likelihood", "likelihood_bg", "balanced", "raw"])
def test_padding_is_never_looked_at(match: str, contrastive: bool) -> None:
    features, steps = embeddings(10)
    loss = ProcedureLoss(GraphDropDTWLoss(match=match), ClusteringLoss(contrastive=contrastive))
    expected = torch.autograd.grad(loss(features, steps, FLOWS, LENGTHS), features)[0]
    spoilt = features.detach().clone()
    for at, length in enumerate(LENGTHS):
        spoilt[at, length:] = torch.nan
    spoilt.requires_grad_()
    found = torch.autograd.grad(loss(spoilt, steps, FLOWS, LENGTHS), spoilt)[0]
    assert torch.equal(found, expected)


def test_a_clip_without_direction_has_a_small_gradient() -> None:
    features, steps = embeddings(11)
    with torch.no_grad():
        features[0, 3] = 0
    found = torch.autograd.grad(ProcedureLoss()(features, steps, FLOWS, LENGTHS), features)[0]
    assert torch.isfinite(found).all() and float(found.abs().max()) < 100


def test_steps_can_be_learnt_too() -> None:
    features, steps = embeddings(12)
    steps = [of_video.requires_grad_() for of_video in steps]
    found = torch.autograd.grad(ProcedureLoss()(features, steps, FLOWS, LENGTHS), steps)
    assert all(torch.isfinite(part).all() and part.any() for part in found)


def test_the_sum_is_that_of_its_parts() -> None:
    features, steps = embeddings(13)
    loss = ProcedureLoss(weight=0.5)
    grounded = GraphDropDTWLoss()(features, steps, FLOWS, LENGTHS)
    clustered = ClusteringLoss()(features, steps, LENGTHS)
    assert loss(features, steps, FLOWS, LENGTHS).item() == pytest.approx((grounded + 0.5 * clustered).item())
    in_order = DropDTWLoss()(features, steps, LENGTHS, skip=torch.full((3, 4), 0.3))
    found = loss(features, steps, lengths=LENGTHS, skip=torch.full((3, 4), 0.3))
    assert found.item() == pytest.approx((in_order + 0.5 * clustered).item())


@pytest.mark.parametrize("bad", [torch.nan, -torch.inf])
@pytest.mark.parametrize("which", ["match", "drop", "skip"])
def test_costs_that_are_no_costs_are_refused(which: str, bad: float) -> None:
    costs = {name: part.detach() for name, part in zip(("match", "drop", "skip"), batch(14), strict=True)}
    costs[which][1, 0] = bad
    with pytest.raises(InputError, match=f"video 1: its {which} costs hold NaN or -inf"):
        soft_cost(TSORTS, **costs, lengths=LENGTHS)
    with pytest.raises(InputError, match="video 1"):
        GraphDropDTWLoss(on_impossible="skip").from_costs(costs["match"], costs["drop"], TSORTS, LENGTHS, costs["skip"])


def test_what_overflows_above_is_not_hidden() -> None:
    match, drop, _ = batch(15)
    found = torch.autograd.grad((soft_cost(TSORTS, match, drop, None, LENGTHS) * torch.inf).sum(), drop)[0]
    assert not torch.isfinite(found).all()


EXTENDED = (
    FlowGraph.from_edges(list("abcd"), [(0, 2, 0.8), (1, 2), (2, 3, 0.6)]),
    FlowGraph.from_edges(list("abc"), [(0, 1)], optional=[2]),
    FlowGraph.from_edges(list("abc"), [(0, 1)], alternatives=[[1, 2]]),
)
LONGER = [8, 9, 6]
SOFTMIN: dict[str, Any] = {"gamma": 0.5, "smoothing": "softmin", "contiguous": True}


@pytest.mark.parametrize(
    ("flows", "options"),
    [
        (EXTENDED, {}),
        (EXTENDED, {"violation": 0.3}),
        (FLOWS, {"repeat": 0.4}),
        (FLOWS, {"durations": 2}),
        (FLOWS, {"durations": lambda flow: Durations.log_normal([1.5] * len(flow), [0.5] * len(flow))}),
        (EXTENDED, {"repeat": lambda flow: [0.1 * step for step in range(len(flow))], "durations": 1}),
    ],
)
@pytest.mark.parametrize("skips", [True, False])
@pytest.mark.filterwarnings("ignore:Input #. requires gradient and is not a double precision:UserWarning")
def test_the_extended_model_is_that_of_posterior(flows: Any, options: dict[str, Any], skips: bool) -> None:
    tsorts, (match, drop, skip) = [TSortGraph.compile(flow) for flow in flows], batch(16)
    skip = skip.detach() if skips else None

    def cost(match: Any, drop: Any) -> Any:
        return soft_cost(tsorts, match, drop, skip, LONGER, **SOFTMIN, **options)

    found = cost(match, drop)
    gradients = torch.autograd.grad(found.sum(), (match, drop))
    narrow = [part.detach().float().requires_grad_() for part in (match, drop)]
    skip_of = skip

    def narrow_cost(match: Any, drop: Any) -> Any:
        given = None if skip_of is None else skip_of.float()
        return soft_cost(tsorts, match, drop, given, LONGER, **SOFTMIN, **options)

    in_float32 = torch.autograd.grad(narrow_cost(*narrow).sum(), narrow)
    assert all(part.dtype == torch.float32 for part in in_float32)
    for one, other in zip(gradients, in_float32, strict=True):
        torch.testing.assert_close(one, other.double(), rtol=0, atol=1e-5)
    assert torch.autograd.gradcheck(narrow_cost, narrow, eps=1e-2, atol=2e-2, rtol=2e-2, nondet_tol=1e-6)
    for at, (tsort, length) in enumerate(zip(tsorts, LONGER, strict=True)):
        own = {name: one(tsort.flow) if callable(one) else one for name, one in options.items()}
        costs = (match[at, : tsort.n_steps, :length].detach().numpy(), drop[at, :length].detach().numpy())
        given = None if skip is None else skip[at, : tsort.n_steps].numpy()
        expected = posterior(tsort, *costs, given, gamma=0.5, **own)
        assert found[at].item() == pytest.approx(expected.cost, abs=1e-9)
        for gradient, probable in ((gradients[0], expected.probability[:-1]), (gradients[1], expected.probability[-1])):
            own_part = gradient[at, : tsort.n_steps, :length] if gradient.ndim == 3 else gradient[at, :length]
            np.testing.assert_allclose(own_part, probable, atol=1e-9)
    assert torch.autograd.gradcheck(cost, (match, drop))


def test_steps_of_one_size_may_be_one_tensor() -> None:
    generator = torch.Generator().manual_seed(21)
    features, steps = (torch.randn(shape, generator=generator) for shape in ((3, 8, 4), (3, 3, 4)))
    steps[1, 2] = steps[1, 0]  # the first of equal steps counts, in each video by itself
    flows = [FlowGraph.chain(["a", "b", "c"])] * 3
    loss = GraphDropDTWLoss()
    assert loss(features, steps, flows).item() == loss(features, list(steps), flows).item()


def test_losses_know_the_extended_model() -> None:
    features, steps = embeddings(17)
    extended: dict[str, Any] = SOFTMIN | {"repeat": 0.5, "durations": 2, "violation": 0.7}
    loss = GraphDropDTWLoss(**extended)
    match, drop = loss.costs(features[:1], steps[:1], [9])
    expected = soft_cost([TSortGraph.compile(EXTENDED[0])], match, drop, None, [9], **extended)
    found = loss(features[:1], steps[:1], EXTENDED[:1], [9])
    assert found.item() == pytest.approx(expected.item() / 9)
    chain = DropDTWLoss(**SOFTMIN, repeat=0.5)(features, steps, LENGTHS)
    assert chain.item() < DropDTWLoss(**SOFTMIN)(features, steps, LENGTHS).item()  # there are more alignments


def test_impossible_videos_of_the_extended_model_have_no_gradient() -> None:
    match, drop, _ = batch(18)
    cost = soft_cost(TSORTS, match, drop, None, LENGTHS, **SOFTMIN, durations=3)
    assert torch.isfinite(cost).tolist() == [False, True, False]  # 12 clips, 9 and 6 are needed
    cost[1].backward()
    assert torch.isfinite(match.grad).all() and not match.grad[0].any()


def test_what_the_extended_model_does_not_know_is_refused() -> None:
    tsorts, (match, drop, skip) = [TSortGraph.compile(flow) for flow in EXTENDED], batch(19)
    with pytest.raises(InputError, match=r"video 1: its procedure has optional or alternative steps"):
        soft_cost(tsorts, match, drop, None, LENGTHS)
    with pytest.raises(InputError, match="repeats and durations need smoothing='softmin' and contiguous=True"):
        GraphDropDTWLoss(repeat=1.0)
    with pytest.raises(InputError, match="no gradient of skip costs"):
        soft_cost(tsorts, match, drop, skip, LENGTHS, **SOFTMIN)


def test_graphs_must_be_compiled_and_some() -> None:
    with pytest.raises(InputError, match=r"video 0: its graph must be a TSortGraph \(TSortGraph.compile"):
        soft_cost(FLOWS, *batch()[:2])
    with pytest.raises(InputError, match="0 videos"):
        soft_cost([], torch.zeros(0, 2, 2), torch.zeros(0, 2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"match": "cosine"}, "unknown match policy 'cosine'"),
        ({"drop": "sometimes"}, "drop must be percentile:N with N from 0 to 100, a number, prototype or prototype:N"),
        ({"drop": "percentile:150"}, "drop must be percentile:N with N from 0 to 100"),
        ({"drop": "constant"}, "drop must be percentile:N"),
        ({"gamma": 0.0}, "gamma must be"),
        ({"smoothing": "mean"}, "unknown smoothing 'mean'"),
        ({"drop": "prototype"}, "needs the dimension"),
        ({"temperature": 0}, "temperature must be"),
        ({"on_impossible": "ignore"}, "on_impossible must be one of error, skip"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        GraphDropDTWLoss(**options)


def test_impossible_gamma_is_refused_when_used() -> None:
    features, steps = embeddings()
    with pytest.raises(InputError, match="gamma must be"):
        GraphDropDTWLoss(gamma=-1)(features, steps, FLOWS, LENGTHS)


def test_nothing_is_left_when_python_ends() -> None:
    code = (
        "import torch; from graph2vid.flow import FlowGraph; from graph2vid.tsort import TSortGraph;"
        "from graph2vid.learn import soft_cost;"
        "soft_cost([TSortGraph.compile(FlowGraph.chain(['a']))], torch.ones(1, 1, 3), torch.ones(1, 3))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "leaked" not in done.stderr

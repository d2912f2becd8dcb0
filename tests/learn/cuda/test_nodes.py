"""Steps that are left out one after the other, as the kernels in registers do it; no GPU is needed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dags import dags

torch = pytest.importorskip("torch", reason="the extra 'learn' is not installed")

from benchmarks.cases import salads, threads  # noqa: E402
from graph2vid import TSortGraph  # noqa: E402
from graph2vid.learn import soft_cost  # noqa: E402
from graph2vid.learn.cuda.cuda_graphs import Layout  # noqa: E402
from graph2vid.learn.cuda.cuda_nodes import ALSO, CARRIED, INNER, LANES, OPEN, PULL, nodes_of  # noqa: E402
from graph2vid.learn.cuda.cuda_numbers import Numbers  # noqa: E402
from graph2vid.learn.cuda.cuda_packs import Pack  # noqa: E402

FAR = 1e30


def softmin(a: float, b: float) -> tuple[float, float]:
    """Return the soft minimum at gamma = 1, and the share of the second."""
    low = -float(np.logaddexp(-a, -b))
    return low, float(np.exp(low - b))


class Kernel:
    """What forward and backward do with a pack, lane by lane and column by column: softmin of gamma = 1, in float64."""

    def __init__(self, layout: Layout, match: np.ndarray, drop: np.ndarray, skip: np.ndarray) -> None:
        self.layout, self.videos, self.clips = layout, len(match), match.shape[2]
        self.match, self.drop, self.skip = match, drop, skip
        numbers = Numbers(4, skips=True)
        self.back_width = layout.out_width + 1
        column = numbers.pack_column(layout, self.videos)
        self.a = Pack(layout, self.videos, layout.width, self.back_width, numbers, column).arrays
        _, self.nodes, _, self.places, *_ = self.a["sizes"].tolist()
        self.rows = self.clips + layout.steps + 1
        self.kept = [dict[tuple[str, int], float]() for _ in range(self.rows + 1)]

    def lanes(self, side: str):
        for lane, which in enumerate(self.a[f"{side}lane"].tolist()):
            yield lane, *divmod(which, self.layout.ideals)

    def forward(self) -> np.ndarray:
        a, layout, none = self.a, self.layout, self.videos * self.layout.ideals
        begin = -(-(none + 2) // 4) * 4
        told = np.full(begin + self.nodes + 3, np.nan)
        told[none] = FAR
        x = {}
        own = {lane: 0.0 if ideal == layout.empty else FAR for lane, _, ideal in self.lanes("")}
        for row in range(self.rows):
            after, late, now, told = self.kept[row], self.kept[row + 1], told, told.copy()
            late["node", self.nodes], late["node", self.nodes + 1] = 0.0, 1.0
            for lane, video, ideal in self.lanes(""):
                clip = row - int(a["level"][lane])
                if not 0 <= clip < self.clips:
                    continue
                before, drop = own[lane], self.drop[video, clip]
                values = [before + drop]
                began = {}
                for w in range(layout.count[ideal]):
                    step = a["label"][w, lane] - video * (layout.steps + 1)
                    enters = now[a["enter"][w, lane]]
                    node, share = softmin(before, enters + self.skip[video, step])
                    told[begin + w * none + lane], late["node", a["tied"][w, lane]] = node, share
                    assert a["tied"][w, lane] in ((w // 2 * none + lane) * 2 + w % 2, self.nodes + 2)
                    value, stayed = softmin(enters, x.get((lane, w), FAR))
                    x[lane, w] = value + self.match[video, step, clip]
                    began[w] = 1 - stayed
                    values.append(x[lane, w])
                own[lane] = -float(np.logaddexp.reduce(-np.array(values)))
                told[a["own"][lane]] = before
                late["left", a["slot"][-1][lane]] = np.exp(own[lane] - values[0])
                for w, begins in began.items():
                    after["state", a["slot"][w, lane]] = np.exp(own[lane] - values[w + 1]), begins
                first, last = a["loose_rows"][lane // LANES : lane // LANES + 2]
                for cost, parts, to, slot in a["loose"][first:last, lane % LANES].tolist():
                    waived = FAR if cost < 0 else self.skip.reshape(-1)[cost]
                    told[to], late["node", slot] = softmin(told[parts & 0xFFFF], now[parts >> 16] + waived)
        ends = np.full((self.videos, layout.ideals), np.inf)
        for lane, video, ideal in self.lanes(""):
            missing = sum(self.skip[video, k] for k in range(layout.steps) if int(a["missing"][lane]) >> k & 1)
            ends[video, ideal] = own[lane] + missing
        self.ends = np.exp(-ends - np.logaddexp.reduce(-ends, axis=1)[:, None])
        return -np.logaddexp.reduce(-ends, axis=1)

    def backward(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradients by match and skip."""
        a, layout, lanes = self.a, self.layout, self.videos * self.layout.ideals
        pulls, passed = np.zeros(lanes + 1), np.zeros(self.places + 1)
        own = {lane: self.ends[video, ideal] for lane, video, ideal in self.lanes("back_")}
        grad, begun, shown = {}, np.zeros_like(self.skip), np.zeros_like(self.match)
        adders = {}
        for first, pieces, place, lag in a["adder"].tolist():
            adders[place % (1 << 15), lag] = (first, first + 4 * pieces, place >> 15)
        behind = {place: max(lag for other, lag in adders if other == place) for place, _ in adders}
        assert all(opens == (lag == behind[place]) for (place, lag), (_, _, opens) in adders.items())
        for row in reversed(range(self.rows)):
            column, to, passed_to = self.kept[row], pulls, passed
            pulls, passed = pulls.copy(), passed.copy()
            for lane, video, _ideal in self.lanes("back_"):
                level = int(a["back_level"][lane])
                clip = row - level
                if not 0 <= clip < self.clips:
                    continue
                pull = own[lane] * column["left", a["back_slot"][-1][lane]]
                for w in range(self.back_width):
                    if a["back_target"][w, lane] == lanes:
                        continue
                    step = a["back_label"][w, lane] - video * (layout.steps + 1)
                    share, begins = column["state", a["back_slot"][w, lane]]
                    g = grad.get((lane, w), 0.0) + to[a["back_target"][w, lane]] * share
                    grad[lane, w] = g * (1 - begins)
                    begun[video, step] += g * begins
                    shown[video, step, clip] += g
                    begin, end, _ = adders[int(a["back_label"][w, lane]), level]
                    assert begin <= a["back_sum"][w, lane] < end
                    every = g * begins + passed_to[w * lanes + lane]
                    second = every * column["node", a["back_node"][w, lane]]
                    passed[a["back_to"][w, lane]] = second
                    pull += every - second
                first, last = a["gather_rows"][lane // LANES : lane // LANES + 2]
                every = left = 0.0
                for parts, where, then, more in a["gather"].view(np.uint32)[first:last, lane % LANES].tolist():
                    place = (parts & 0xFFFC) // 4
                    every += left if where & CARRIED else passed[place] if parts & INNER else passed_to[place]
                    if (also := more >> 16) & ALSO:
                        every += (passed if also & INNER else passed_to)[(also & 0xFFFC) // 4]
                    if parts & OPEN:
                        continue
                    left = every
                    for goes, node in ((parts >> 16, where >> 16), (then & 0xFFFC, then >> 16)):
                        second = left * column["node", node // 2]
                        passed[goes // 4] = second
                        left -= second
                    if where & PULL:
                        pull += left
                    else:
                        passed[(where & 0xFFFC) // 4] = left
                    every = 0.0
                pulls[a["back_own"][lane]] = own[lane]
                own[lane] = pull
        return shown, 1 - begun


def check(flow, videos: int, clips: int, seed: int) -> None:
    tsort = TSortGraph.compile(flow)
    random = np.random.default_rng(seed)
    match, drop = random.random((videos, len(flow), clips)) * 3, random.random((videos, clips))
    skip = random.random((videos, len(flow))) * 4 - 0.5
    kernel = Kernel(Layout.of(tsort, skips=True), match, drop, skip)
    cost = kernel.forward()
    shown, waived = kernel.backward()
    inputs = [torch.from_numpy(part).requires_grad_() for part in (match, drop, skip)]
    wanted = soft_cost([tsort] * videos, *inputs, gamma=1.0, smoothing="softmin", contiguous=True)
    by_match, _, by_skip = torch.autograd.grad(wanted.sum(), inputs)
    np.testing.assert_allclose(cost, wanted.detach().numpy(), atol=1e-9)
    np.testing.assert_allclose(shown, by_match.numpy(), atol=1e-9)
    np.testing.assert_allclose(waived, by_skip.numpy(), atol=1e-9)


@given(dags(max_steps=6), st.integers(1, 3), st.integers(1, 7), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_lanes_with_nodes_give_costs_and_gradients(flow, videos, clips, seed) -> None:
    check(flow, videos, clips, seed)


def test_threads_that_join() -> None:
    check(threads(2, 2, 2, ends=True), videos=2, clips=5, seed=0)


def test_a_thread_takes_one_node_more_for_each_step() -> None:
    layout = Layout.of(TSortGraph.compile(threads(3, 3, 3, 3, ends=True)), skips=True)
    nodes = nodes_of(layout)
    assert len(nodes) == 640 < layout.arcs - layout.states
    assert (nodes.tied >= 0).sum() == 577 and nodes.simple.sum() == 512  # with a state, and back through one
    assert len(nodes_of(Layout.of(TSortGraph.compile(salads()), skips=True))) < 20_000

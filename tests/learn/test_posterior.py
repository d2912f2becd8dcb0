"""Posteriors of batches are those of single videos."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dags import dags
from graph2vid import FlowGraph, TSortGraph, posterior

torch = pytest.importorskip("torch", reason="the extra 'learn' is not installed")

from graph2vid.errors import InputError  # noqa: E402
from graph2vid.learn import posteriors  # noqa: E402

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
@settings(deadline=None, max_examples=40)
@given(
    flows=st.lists(dags(max_steps=5), min_size=1, max_size=4),
    seed=st.integers(0, 2**32 - 1),
    skips=st.booleans(),
    contiguous=st.booleans(),
)
def test_a_batch_is_its_videos(device, flows, seed, skips, contiguous) -> None:
    random = np.random.default_rng(seed)
    tsorts = [TSortGraph.compile(flow) for flow in flows]
    lengths = [len(flow) + int(random.integers(0, 6)) for flow in flows]
    match = torch.full((len(flows), max(map(len, flows)), max(lengths)), torch.nan, dtype=torch.float64)
    drop = torch.full((len(flows), max(lengths)), torch.nan, dtype=torch.float64)
    for at, (flow, length) in enumerate(zip(flows, lengths, strict=True)):
        match[at, : len(flow), :length] = torch.from_numpy(random.normal(size=(len(flow), length)))
        drop[at, :length] = torch.from_numpy(random.normal(size=length))
    skip = torch.from_numpy(random.normal(size=match.shape[:2])) if skips else None
    given = (match.to(device), drop.to(device), None if skip is None else skip.to(device))
    found = posteriors(tsorts, *given, lengths, gamma=0.5, contiguous=contiguous)
    for at, (tsort, length) in enumerate(zip(tsorts, lengths, strict=True)):
        one = posterior(
            tsort,
            match[at, : tsort.n_steps, :length].numpy(),
            drop[at, :length].numpy(),
            skip=None if skip is None else skip[at, : tsort.n_steps].numpy(),
            contiguous=contiguous,
            gamma=0.5,
        )
        assert float(found.cost[at]) == pytest.approx(one.cost)
        assert np.allclose(found.match[at, : tsort.n_steps, :length].cpu(), one.probability[:-1], atol=1e-9)
        assert not found.match[at, :, length:].any()
        assert not found.match[at, tsort.n_steps :].any()
        if not contiguous:
            continue
        assert np.allclose(found.expected[at, : tsort.n_steps].cpu(), one.expected, atol=1e-6)
        assert skips or float(found.end[at].sum()) == pytest.approx(tsort.n_steps)
        assert torch.allclose(found.end[at].sum(-1), found.start[at].sum(-1))


CHAIN = TSortGraph.compile(FlowGraph.chain(["a", "b"]))


def test_steps_with_background_inside_have_no_one_beginning() -> None:
    found = posteriors([CHAIN], torch.zeros(1, 2, 5), torch.zeros(1, 5), contiguous=False)
    with pytest.raises(InputError, match="one unbroken segment"):
        _ = found.expected


def test_lengths_must_fit() -> None:
    with pytest.raises(InputError, match="lengths must be"):
        posteriors([CHAIN], torch.zeros(1, 2, 5), torch.zeros(1, 5), lengths=[6])

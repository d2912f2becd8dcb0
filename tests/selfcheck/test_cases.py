"""Random cases: reproducible, varied, and written down without loss."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from graph2vid.selfcheck.cases import FAMILIES, Case, make_case

CASES = [make_case(3, index) for index in range(600)]


def same_arrays(one, other):
    for a, b in zip(one, other, strict=True):
        if a is None or b is None:
            assert a is b
        else:
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("case", CASES[:40])
def test_same_for_ever(case):
    again = make_case(3, case.index)
    written = Case.from_json(json.loads(json.dumps(case.to_json(), allow_nan=False)))
    for other in (again, written):
        assert other.flow == case.flow
        assert (other.contiguous, other.gamma, other.rules, other.exact) == (
            case.contiguous,
            case.gamma,
            case.rules,
            case.exact,
        )
        for one, two in zip((case.costs, *case.others), (other.costs, *other.others), strict=True):
            same_arrays(one, two)


def test_variety():
    assert {case.kind for case in CASES} == set(FAMILIES)
    assert {str(case.costs.match.dtype) for case in CASES} == {"float32", "float64"}
    assert {rule[0] for case in CASES for rule in case.rules} == {"within", "forbid", "background", "show"}
    count = Counter[str]()
    for case in CASES:
        match, drop, skip = case.costs
        assert not any(np.isnan(array).any() for array in case.costs if array is not None)
        count["contiguous"] += case.contiguous
        count["exact"] += case.exact
        count["batch"] += bool(case.others)
        count["forbidden"] += bool(np.isinf(match).any())
        count["no background"] += bool(np.isinf(drop).any())
        count["skips"] += skip is not None
        count["some skips"] += skip is not None and bool(np.isinf(skip).any())
        count["several sinks"] += len(case.flow.sinks) > 1
        count["more than a word"] += len(case.flow) > 64
        count["large"] += len(drop) >= 70 and len(case.flow) < 20
        count["too short"] += skip is None and len(drop) < len(case.flow)
    assert len(count) == 11
    assert all(count.values()), count


def test_lowering_writes_infinities():
    case = next(
        case for case in CASES if {rule[0] for rule in case.rules} >= {"within"} and case.costs.skip is not None
    )
    _, step, start, stop = next(rule for rule in case.rules if rule[0] == "within")
    lowered = case.lowered
    assert lowered.skip is not None
    assert np.isinf(lowered.skip[step])
    assert np.isinf(lowered.match[step, :start]).all()
    assert np.isinf(lowered.match[step, stop:]).all()

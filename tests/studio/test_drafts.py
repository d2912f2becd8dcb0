"""Edits of a flow graph: what they do, what they refuse, and that all of them can be undone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pydantic", reason="the extra [studio] is not installed")

from graph2vid.errors import FormatError, Graph2VidError, GraphError, InputError
from graph2vid.flow import FlowGraph
from graph2vid.studio.drafts import MOST_STEPS, Draft, EdgeReason
from graph2vid.studio.edits import AddStep, History, Replace, read_entries

# 1 → 2 → 4, 3 → 4
FLOW = FlowGraph.from_edges(["boil", "cook", "chop", "serve"], [(0, 1), (1, 3), (2, 3)], "Dinner")
REASONS = (EdgeReason("1", "2", "same noun", "water"), EdgeReason("2", "4", "same noun", "pasta"))
DRAFT = Draft(FLOW, REASONS)


def edges(draft: Draft) -> set[tuple[str, str]]:
    return {(draft.flow.ids[a], draft.flow.ids[b]) for a, b in draft.flow.edges}


def test_edges_are_added_removed_and_reversed() -> None:
    assert edges(DRAFT.with_edge("3", "2")) == {("1", "2"), ("2", "4"), ("3", "4"), ("3", "2")}
    assert edges(DRAFT.without_edge("1", "2")) == {("2", "4"), ("3", "4")}
    reversed_draft = DRAFT.with_edge_reversed("1", "2")
    assert edges(reversed_draft) == {("2", "1"), ("2", "4"), ("3", "4")}
    assert EdgeReason("2", "1", "reversed by hand") in reversed_draft.reasons
    assert all((reason.before, reason.after) != ("1", "2") for reason in reversed_draft.reasons)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.with_edge("4", "1"), r"4 → 1 is refused: the steps form a cycle: 1 → 2 → 4 → 1"),
        (lambda d: d.with_edge("1", "1"), "cannot come before itself"),
        (lambda d: d.with_edge("1", "2"), "step 2 waits for step 1 already"),
        (lambda d: d.with_edge("1", "9"), "unknown step '9'"),
        (lambda d: d.without_edge("1", "4"), "there is no edge from step 1 to step 4"),
        (lambda d: d.with_edge("1", "4").with_edge_reversed("1", "4"), "form a cycle"),
        (lambda d: d.with_merged(("1", "4")), "the steps 1, 4 cannot be one, for others come between them"),
        (lambda d: d.with_merged(("1", "1")), "at least two steps"),
        (lambda d: d.with_split("1", ("a",)), "at least two"),
        (lambda d: d.without_step("9"), "unknown step"),
        (lambda d: d.renamed("9", "x"), "unknown step"),
        (lambda d: d.with_optional("9", True), "unknown step"),
        (lambda d: d.renamed("1", "x" * 2001), "longer than 2000 characters"),
        (lambda d: d.with_alternative("1", "1"), "no alternative to itself"),
        (lambda d: d.with_alternative("1", "9"), "unknown step '9'"),
        (lambda d: d.with_alternative("1", "3").with_alternative("1", "3"), "both have alternatives already"),
        (lambda d: d.with_alternative("2", "4"), "step 2 must come before 4, but they are alternatives"),
        (lambda d: d.without_alternative("1"), "has no alternatives"),
    ],
)
def test_what_is_refused_says_why(change: Any, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        change(DRAFT)


def test_messages_speak_of_the_numbers_that_the_editor_shows() -> None:
    draft = DRAFT.without_step("1")  # what was the second is the first now
    with pytest.raises(GraphError, match=r"^3 → 1 is refused: the steps form a cycle: 1 → 3 → 1$"):
        draft.with_edge("4", "2")
    with pytest.raises(GraphError, match=r"^step 3 waits for step 1 already$"):
        draft.with_edge("2", "4")
    with pytest.raises(GraphError, match=r"^there is no edge from step 1 to step 2$"):
        draft.without_edge("2", "3")
    with pytest.raises(GraphError, match=r"step 1 must come before 3, but they are alternatives"):
        draft.with_alternative("2", "4")
    with pytest.raises(GraphError, match=r"^the steps 1, 4 cannot be one, for others come between them"):
        DRAFT.with_edge("1", "4").without_step("3").with_split("1", ("a", "b")).with_merged(("1", "4"))


def test_split_keeps_the_order() -> None:
    draft = DRAFT.with_optional("2", True).with_split("2", ("heat", "add", "stir"))
    assert draft.flow.ids == ("1", "2", "5", "6", "3", "4")
    assert draft.flow.texts[1:4] == ("heat", "add", "stir")
    assert edges(draft) == {("1", "2"), ("2", "5"), ("5", "6"), ("6", "4"), ("3", "4")}
    assert [draft.flow.ids[step] for step in draft.flow.optional] == ["2", "5", "6"]
    assert EdgeReason("6", "4", "same noun", "pasta") in draft.reasons


def test_merge_keeps_the_edges() -> None:
    draft = DRAFT.with_merged(("2", "3"))
    assert draft.flow.texts == ("boil", "cook chop", "serve")
    assert edges(draft) == {("1", "2"), ("2", "4")}
    assert DRAFT.with_merged(("1", "2"), "all").flow.texts[0] == "all"
    both = DRAFT.with_optional("2", True)
    assert both.with_merged(("2", "3")).flow.optional == ()
    assert both.with_optional("3", True).with_merged(("2", "3")).flow.optional == (1,)


def test_a_removed_step_leaves_the_order_of_others() -> None:
    draft = DRAFT.without_step("2")
    assert edges(draft) == {("1", "4"), ("3", "4")}
    with pytest.raises(GraphError, match="nothing would be left"):
        Draft(FlowGraph.bag(["one"])).without_step("1")


def test_alternatives_and_confidences_stay() -> None:
    flow = FlowGraph.from_edges(
        ["start", "fry", "bake", "serve"], [(0, 1, 0.7), (0, 2), (1, 3), (2, 3)], alternatives=[[[1], [2]]]
    )
    draft = Draft(flow).with_split("2", ("oil", "fry"))
    groups = [[[draft.flow.ids[s] for s in branch] for branch in group] for group in draft.flow.alternatives]
    assert groups == [[["2", "5"], ["3"]]]
    assert draft.flow.confidence[0, 1] == 0.7
    assert draft.with_merged(("2", "5")).flow.alternatives == (((1,), (2,)),)
    with pytest.raises(GraphError, match="alternatives"):
        draft.with_merged(("2", "3"))
    with pytest.raises(GraphError, match="alternatives"):
        draft.with_edge("2", "3")


def test_alternatives_are_made_and_ended() -> None:
    two = DRAFT.with_alternative("3", "1")
    assert two.flow.alternatives == (((0,), (2,)),) and two.reasons == DRAFT.reasons
    added = two.with_step("steam")
    assert added.with_alternative("5", "3").flow.alternatives == (((0,), (2,), (4,)),)
    assert added.with_alternative("3", "5").flow.alternatives == (((0,), (2,), (4,)),)
    three = added.with_alternative("5", "3")
    assert three.without_alternative("1").flow.alternatives == (((2,), (4,)),)
    assert three.without_alternative("1").without_alternative("5").flow.alternatives == ()
    assert three.with_split("5", ("fill", "steam")).without_alternative("5").flow.alternatives == (((0,), (2,), (5,)),)


def test_too_many_steps_are_refused() -> None:
    with pytest.raises(GraphError, match=f"up to {MOST_STEPS} steps"):
        Draft(FlowGraph.bag([str(number) for number in range(MOST_STEPS + 1)]))


def test_json() -> None:
    draft = DRAFT.with_optional("3", True)
    assert Draft.from_json(draft.to_json()) == draft
    assert FlowGraph.from_json(draft.to_json()) == draft.flow  # other tools read it too
    with pytest.raises(FormatError, match="a reason has before"):
        Draft.from_json(FLOW.to_json() | {"reasons": [{"before": "1"}]})


# -- histories -------------------------------------------------------------------------------------------------

IDS = st.sampled_from([str(number) for number in range(1, 8)])
TEXTS = st.text(min_size=1, max_size=8)
LINKS = ["add-edge", "remove-edge", "reverse-edge"]
EDITS = st.one_of(
    st.fixed_dictionaries({"op": st.sampled_from(LINKS), "before": IDS, "after": IDS}),
    st.fixed_dictionaries({"op": st.just("add-step"), "text": TEXTS, "after": st.none() | IDS}),
    st.fixed_dictionaries({"op": st.just("remove-step"), "step": IDS}),
    st.fixed_dictionaries({"op": st.just("rename"), "step": IDS, "text": TEXTS}),
    st.fixed_dictionaries({"op": st.just("optional"), "step": IDS, "optional": st.booleans()}),
    st.fixed_dictionaries({"op": st.just("add-alternative"), "step": IDS, "other": IDS}),
    st.fixed_dictionaries({"op": st.just("remove-alternative"), "step": IDS}),
    st.fixed_dictionaries({"op": st.just("split"), "step": IDS, "texts": st.lists(TEXTS, min_size=2, max_size=3)}),
    st.fixed_dictionaries({"op": st.just("merge"), "steps": st.lists(IDS, min_size=2, max_size=3)}),
)  # fmt: skip


def begun() -> History:
    return History.empty().edited(Replace(op="replace", source="", flow=DRAFT.to_json()))


@given(st.lists(st.one_of(EDITS, st.sampled_from(["undo", "redo"])), max_size=30))
@settings(max_examples=80, deadline=None)
def test_undo_and_redo_lead_back_and_forth(todo: list[Any]) -> None:
    history = begun()
    past, future = [None, history.draft], []
    for entry in todo:
        revision = history.revision
        try:
            if entry == "undo":
                history = history.undone()
                future.append(past.pop())
            elif entry == "redo":
                history = history.redone()
                past.append(future.pop())
            else:
                (edit,) = read_entries([entry], "test")
                history = history.edited(edit)
                past, future = [*past, history.draft], []
        except Graph2VidError:
            assert history.revision == revision  # what is refused changes nothing
            continue
        assert history.revision == revision + 1
        assert history.draft == past[-1]
        if history.draft is not None:
            assert len(history.draft.flow.topological_order) == len(history.draft.flow)
    again = History.from_json(history.to_json(), "test")
    assert (again.draft, again.at, again.revision, again.to_json()) == (
        history.draft, history.at, history.revision, history.to_json()
    )  # fmt: skip


def test_a_graph_can_begin_with_a_step() -> None:
    history = (
        History.empty().edited(AddStep(op="add-step", text="one")).edited(AddStep(op="add-step", text="two", after="1"))
    )
    assert history.draft is not None
    assert edges(history.draft) == {("1", "2")}
    with pytest.raises(InputError, match="nothing to redo"):
        history.redone()
    with pytest.raises(InputError, match="nothing to undo"):
        History.empty().undone()
    with pytest.raises(GraphError, match="no flow graph yet"):
        History.empty().edited(AddStep(op="add-step", text="one", after="1"))


def test_a_long_history_forgets_its_beginning() -> None:
    history = begun()
    for number in range(520):
        history = history.edited(read_entries([{"op": "rename", "step": "1", "text": f"boil {number}"}], "")[0])
    assert len(history.entries) == history.at == 500
    assert History.from_json(history.to_json(), "test").draft == history.draft
    for _ in range(500):
        history = history.undone()
    assert history.draft is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"at": 7}, "a place among 1 edits"),
        ({"edits": [{"op": "explode"}]}, r"edits\.0"),
        ({"version": 99}, "install a newer one"),
        ({"base": {"format": "x"}}, "not a graph2vid-flow file"),
    ],
)
def test_a_damaged_log_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        History.from_json(begun().to_json() | change, "log")

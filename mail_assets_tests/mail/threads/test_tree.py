"""Shapes of threads, and properties of any corpus."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.threads import ThreadMessage, ThreadNode, build_trees
from mail_assets_tests.cases import cases


def mail(
    id: str, references: str = "", in_reply_to: str = "", sent_at: float = 0.0
) -> ThreadMessage:
    return ThreadMessage(id, tuple(references.split()), tuple(in_reply_to.split()), sent_at)


def outline(messages: Sequence[ThreadMessage]) -> list[str]:
    """One line for each node: thread, indent by depth, "?" after a ghost."""
    nodes = build_trees(messages)
    return [
        f"{node.thread_id}: {'  ' * node.depth}{node.message_id}{'?' * node.is_ghost}"
        for node in nodes
    ]


@cases("messages, expected", {
    "nothing": ([], []),
    "parent dated and loaded after its child": (
        [mail("b", "a", "a", 1), mail("a", sent_at=2)],
        ["a: a", "a:   b"],
    ),
    "parent in an earlier month": (
        [mail("a", sent_at=0.0), mail("b", "a", "a", 40 * 86400.0)],
        ["a: a", "a:   b"],
    ),
    "a mail that names two roots is below the last, and ties nothing": (
        [mail("b", sent_at=1), mail("c", sent_at=2), mail("x", "b c", "", 3)],
        ["b: b", "c: c", "c:   x"],
    ),
    "cycle": ([mail("a", "b", "b", 1), mail("b", "a", "a", 2)], ["a: b", "a:   a"]),
    "self-reference": ([mail("s", "s", "s", 1)], ["s: s"]),
    "ghost root with two children": (
        [mail("x", "g", "g", 1), mail("y", "g", "g", 2)],
        ["g: g?", "g: x", "g: y"],
    ),
    "ghost between two messages": (
        [mail("a", sent_at=1), mail("c", "a b", "b", 3)],
        ["a: a", "a:   b?", "a:   c"],
    ),
    "chain of ghosts above": ([mail("a", "g1 g2", "z", 1)], ["a: g1?", "a: g2?", "a: z?", "a: a"]),
    "a hijacked thread stays one, whatever its subjects": (
        [mail("a", sent_at=1), mail("b", "a", "a", 2)],
        ["a: a", "a:   b"],
    ),
    "a reply without references is a thread of its own": (
        [mail("a", sent_at=1), mail("b", sent_at=2)],
        ["a: a", "b: b"],
    ),
    "cross-posted: copies of one message are one node": (
        [mail("a", sent_at=1), mail("a", sent_at=1), mail("b", "a", "", 2)],
        ["a: a", "a:   b"],
    ),
    "one In-Reply-To wins over the last reference": (
        [mail("a", sent_at=1), mail("b", sent_at=2), mail("c", "a", "b", 3)],
        ["a: a", "b: b", "b:   c"],
    ),
    "several In-Reply-To beside references neither win nor unite": (
        [mail("a", sent_at=1), mail("b", sent_at=2), mail("c", "a", "b x", 3)],
        ["a: a", "a:   c", "b: b"],
    ),
    "the first of several In-Reply-To where there are no references": (
        [mail("a", sent_at=1), mail("c", "", "a b", 3)],
        ["a: a", "a:   c"],
    ),
    "the other In-Reply-To are not united": (
        [mail("a", sent_at=1), mail("b", sent_at=2), mail("c", "", "a b", 3)],
        ["a: a", "a:   c", "b: b"],
    ),
    "siblings by date, then id": (
        [mail("a", "", "", 1), mail("c", "", "a", 3), mail("b", "", "a", 3)],
        ["a: a", "a:   b", "a:   c"],
    ),
})  # fmt: skip
def test_threads_have_this_shape(messages: list[ThreadMessage], expected: list[str]) -> None:
    assert outline(messages) == expected


def test_earliest_copy_counts_then_most_references() -> None:
    copies = [
        mail("m", "", "", 2),
        mail("m", "", "", 1),
        mail("m", "a", "", 1),
        mail("a", sent_at=0),
    ]
    for seed in range(10):
        random.Random(seed).shuffle(copies)
        assert outline(copies) == ["a: a", "a:   m"]


@pytest.mark.parametrize("newest_first", [False, True])
def test_chain_of_20_000_messages_takes_linear_time(newest_first: bool) -> None:
    size = 20_000
    chain = [
        mail(f"m{i:06}", f"m{i - 1:06}" if i else "", "", float(-i if newest_first else i))
        for i in range(size)
    ]
    # first everything is named by somebody, the costly case for a search for cycles
    chain += [mail(f"x{i:06}", f"m{i:06}", "", -1e9) for i in range(size)]
    assert max(node.depth for node in build_trees(chain)) == size


messages = st.lists(
    st.builds(
        ThreadMessage,
        id=st.integers(0, 11).map(lambda i: f"i{i:02}"),
        references=st.lists(st.integers(0, 19).map(lambda i: f"i{i:02}"), max_size=4).map(tuple),
        in_reply_to=st.lists(st.integers(0, 19).map(lambda i: f"i{i:02}"), max_size=2).map(tuple),
        sent_at=st.integers(0, 4).map(float),
        arrived_at=st.integers(0, 4).map(float),
        tie=st.sampled_from(["", "a"]),
        lists=st.sampled_from([("dev",), ("users",), ("dev", "users")]),
        topic=st.sampled_from(["", "lease", "vacuum"]),
        is_answer=st.booleans(),
        known_at=st.one_of(st.none(), st.integers(0, 4).map(float)),
    ),
    max_size=14,
)


@given(messages, st.randoms(use_true_random=False))
@settings(max_examples=200)
def test_order_of_the_load_does_not_matter(corpus: list[ThreadMessage], rng: random.Random) -> None:
    expected = build_trees(corpus)
    again = corpus + rng.sample(corpus, min(3, len(corpus)))  # a partition loaded twice
    rng.shuffle(again)
    assert build_trees(again) == expected
    cut = rng.randrange(len(again) + 1)
    assert build_trees(m for part in (again[cut:], again[:cut]) for m in part) == expected


@given(messages)
@settings(max_examples=200)
def test_nodes_agree_with_each_other(corpus: list[ThreadMessage]) -> None:
    nodes = build_trees(corpus)
    by_id = {node.message_id: node for node in nodes}
    assert len(by_id) == len(nodes)
    assert {node.message_id for node in nodes if not node.is_ghost} == {m.id for m in corpus}
    threads: dict[str, list[ThreadNode]] = {}
    for node in nodes:
        threads.setdefault(node.thread_id, []).append(node)
    assert [node for thread in threads.values() for node in thread] == nodes
    for thread in threads.values():
        assert [node.position for node in thread] == list(range(len(thread)))
        assert {node.thread_id for node in thread} == {min(node.message_id for node in thread)}
        assert len({node.root_id for node in thread}) == 1
    for node in nodes:
        ancestor = node.parent_message_id
        assert (node.root_id == node.message_id) == (ancestor is None)
        while ancestor is not None and by_id[ancestor].is_ghost:
            assert by_id[ancestor].position < node.position
            ancestor = by_id[ancestor].parent_message_id
        assert node.parent_id == ancestor
        assert node.depth == (by_id[ancestor].depth + 1 if ancestor else 0)
        if node.is_ghost:
            assert any(child.parent_message_id == node.message_id for child in nodes)

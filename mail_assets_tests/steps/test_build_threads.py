"""Threads are built over months and lists; a run writes only the difference."""

from collections.abc import Iterator, Sequence

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message.subjects import find_topic, is_answer
from mail_assets.mail.threads import ThreadMessage, ThreadNode, build_trees, find_aliases
from mail_assets.postgres.database import Database
from mail_assets.postgres.embedded import Cluster
from mail_assets.reading.conversations import Place, find_place
from mail_assets.steps import build_threads as step
from mail_assets.steps.build_threads import build_threads
from mail_assets.tables.lists import EVERY_LIST, show_lists
from mail_assets.tables.removed_messages import hide_ids
from mail_assets.tables.threads import read_references, read_threads, replace_threads
from mail_assets_tests.databases import new_database
from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, World, mail

REPLY = "<a@example.org>"


def load(world: World, month: str, list_name: str, *mails: bytes, at: int = 0) -> None:
    world.load(*mails, month=month, list_name=list_name, at=at)


def threads(world: World) -> dict[str, str]:
    return dict(world.rows("threads", "message_id, thread_id", "not is_ghost"))


def test_thread_continues_over_months_and_lists(world: World) -> None:
    load(world, MARCH, HARBOR, mail("a"), mail("other"))
    load(world, APRIL, HARBOR, mail("b", references=REPLY))
    load(world, MARCH, PIER, mail("c", references=REPLY))
    outcome = world.threads()
    found = threads(world)
    assert found["a@example.org"] == found["b@example.org"] == found["c@example.org"]
    assert outcome.counts["threads"] == 2
    assert outcome.counts["messages"] == 4
    assert outcome.counts["ghosts"] == 0


#: A patch that answers a review.
PATCH = "> Please check.\n\nDone.\n\n--- a/f.c\n+++ b/f.c\n@@ -1 +1 @@\n-old\n+new\n"


@pytest.mark.parametrize(
    ("body", "joins"),
    [
        ("On 4 Mar 2024 Ann wrote:\n> What a is about stands here.\n\nIt does not.\n", True),
        ("> What a is about stands here.\n\nIt does not.\n", True),
        ("The report of this week, as ever.\n", False),
        (PATCH, False),
    ],
    ids=["attribution and quote", "quote alone", "text", "patch"],
)
def test_quoting_mail_joins_its_topic_as_re_does(world: World, body: str, joins: bool) -> None:
    later = "Tue, 05 Mar 2024 09:00:00 +0000"
    load(world, MARCH, HARBOR, mail("a"), mail("b", body, subject="about a", date=later))
    world.threads()
    found = threads(world)
    assert (found["a@example.org"] == found["b@example.org"]) == joins


def test_missing_parent_is_a_ghost_until_it_comes(world: World) -> None:
    load(world, APRIL, HARBOR, mail("b", references=REPLY), mail("c", references=REPLY))
    assert world.threads().counts["ghosts"] == 1
    load(world, MARCH, HARBOR, mail("a"))
    outcome = world.threads()
    assert outcome.counts["ghosts"] == 0
    assert outcome.counts["threads"] == 1


def test_order_of_loading_does_not_matter(world: World) -> None:
    load(world, APRIL, HARBOR, mail("b", references=REPLY))
    world.threads()
    load(world, MARCH, HARBOR, mail("a"), mail("x"))
    late = world.threads()
    with world.connect() as connection:
        connection.execute(
            "truncate threads, thread_aliases, thread_changes, partitions, messages, mbox_archives"
        )
    world.chain(MARCH, last="messages")
    world.chain(APRIL, last="messages")
    assert world.threads().digest == late.digest


def test_second_run_writes_nothing(world: World) -> None:
    load(world, MARCH, HARBOR, mail("a"), mail("b", references=REPLY))
    first, before = world.threads(), world.writes()
    again = world.threads()
    assert world.writes() == before
    assert not again.changed
    assert again.digest == first.digest
    assert again.counts == {**first.counts, "written": 0, "deleted": 0}


def test_run_writes_only_the_difference(world: World) -> None:
    load(world, MARCH, HARBOR, mail("a"), mail("b"), mail("c"))
    world.threads()
    load(world, MARCH, HARBOR, mail("a"), mail("b"), mail("d"), at=1)
    outcome = world.threads()
    assert (outcome.counts["written"], outcome.counts["deleted"]) == (1, 1)


def test_empty_corpus_has_no_threads(world: World) -> None:
    outcome = world.threads()
    assert outcome.counts["threads"] == 0
    assert not outcome.changed
    assert not world.threads().changed


def test_change_reads_and_writes_only_what_it_touches(world: World) -> None:
    load(world, MARCH, HARBOR, *(mail(f"m{n}") for n in range(20)))
    assert world.threads().counts["read"] == 20
    load(world, APRIL, HARBOR, mail("r", references="<m7@example.org>"))
    counts = world.threads().counts
    assert (counts["read"], counts["written"], counts["deleted"]) == (2, 1, 0)
    assert (counts["messages"], counts["threads"], counts["ghosts"]) == (21, 20, 0)


def test_another_version_builds_all_and_writes_the_difference(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(world, MARCH, HARBOR, mail("a"), mail("b"))
    first = world.threads()
    monkeypatch.setattr(step, "THREADS_VERSION", "another")
    monkeypatch.setattr(step, "PORTION", 1)
    again = world.threads()
    assert again.counts["read"] == 2
    assert (again.counts["written"], again.counts["deleted"]) == (0, 0)
    assert again.digest == first.digest


def test_link_to_a_thread_outlives_merging_and_splitting(world: World) -> None:
    load(world, MARCH, HARBOR, mail("b"), mail("c", references=REPLY))
    world.threads()
    load(world, APRIL, HARBOR, mail("a", references="<b@example.org>"))
    world.threads()
    assert {*threads(world).values()} == {"a@example.org"}
    load(world, APRIL, HARBOR, mail("x"), at=1)
    world.threads()
    with world.connect() as connection:
        assert find_place(connection, "a@example.org") == Place("a@example.org", 0)
        assert find_place(connection, "b@example.org") == Place("b@example.org", 0)
        assert find_place(connection, "c@example.org") == Place("a@example.org", 1)
        assert find_place(connection, "unheard@example.org") is None


def test_portion_is_built_again_when_a_load_commits_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [mail("d", references="<b@example.org>"), mail("c", references=REPLY)]
    load(world, MARCH, HARBOR, mail("b"), *others)
    world.threads()
    world.summaries()
    load(world, APRIL, HARBOR, mail("a", references="<b@example.org>"))
    built: list[int] = []

    def build(messages: Sequence[ThreadMessage]) -> list[ThreadNode]:
        if not built:  # the summary of b, which this portion deletes too
            load(world, MARCH, HARBOR, mail("b", "New words."), *others, at=1)
        built.append(len(messages))
        return build_trees(messages)

    monkeypatch.setattr(step, "build_trees", build)
    outcome = world.threads()
    assert built == [4, 4]
    assert (outcome.counts["read"], outcome.counts["threads"]) == (4, 1)
    assert {*threads(world).values()} == {"a@example.org"}
    with world.connect() as connection:
        connection.execute("truncate threads, partitions")
    assert world.threads().digest == outcome.digest


#: (message, its references, days, subject): possible content of a month, in small.
Mails = list[tuple[int, list[int], int, str]]

MONTHS = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.lists(st.integers(0, 14), max_size=6),
        st.sampled_from([0, 1, 3, 50, 101, 140]),
        st.sampled_from(["", "lease", "Re: lease", "Re: vacuum"]),
    ),
    max_size=6,
    unique_by=lambda m: m[0],
)
LISTS = ("dev", "users", "help")
#: Changes of the lists in turn; after some of them no threads are built, and after some an id is
#: hidden.
HISTORY = st.lists(
    st.tuples(st.integers(0, 2), MONTHS, st.booleans(), st.one_of(st.none(), st.integers(0, 14))),
    min_size=1,
    max_size=6,
)

ROW = """
insert into messages
select %(list)s, '2024-03', %(id)s, 0, '', '', to_timestamp(%(sent)s), 'date', '', '', '',
       '', '', '{}', '{}', '{}', %(in_reply_to)s, %(refs)s, '', 'plain', '', '[]', '[]', '{}',
       '{}', '', to_timestamp(%(arrived)s), %(source)s, %(topic)s, %(is_answer)s
"""


def fill(connection: psycopg.Connection, list_name: str, mails: Mails) -> None:
    with connection.transaction():
        connection.execute("delete from messages where list = %s", (list_name,))
        for name, refs, day, subject in mails:
            direct = [f"i{x:02}" for x in refs[:1]] if day % 2 else [f"i{x:02}" for x in refs]
            row = {
                "list": list_name,
                "id": f"i{name:02}",
                "sent": day * 86_400,
                "arrived": (day + 3 * (name % 2)) * 86_400,
                "source": "received" if name % 3 else "loaded",
                "in_reply_to": direct,
                "refs": [f"i{x:02}" for x in refs[1:]],
                "topic": find_topic(subject),
                "is_answer": is_answer(subject),
            }
            connection.execute(ROW.encode(), row)


def hide(connection: psycopg.Connection, *names: str) -> None:
    """Forget messages; their parents and answers remain in their threads."""
    with connection.transaction():
        connection.execute("delete from messages where message_id = any(%s)", ([*names],))
        hide_ids(connection, {name: f"hidden-{name}" for name in names})


def test_figures_and_digest_stay_right_after_forgetting(world: World) -> None:
    load(world, MARCH, HARBOR, mail("a"), mail("b", references=REPLY), mail("alone"))
    load(world, APRIL, HARBOR, mail("c", references="<lost@example.org>"))
    world.threads()
    with world.connect() as connection:
        hide(connection, "a@example.org", "alone@example.org", "lost@example.org")
        outcome = build_threads(connection, world.said.append)
        connection.execute("truncate threads, partitions")
        anew = build_threads(connection, world.said.append)
    assert outcome.digest == anew.digest
    for figure, value in [("messages", 2), ("threads", 2), ("ghosts", 2)]:
        assert outcome.counts[figure] == anew.counts[figure] == value


@pytest.fixture(scope="module")
def connection(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[psycopg.Connection]:
    """A connection to a database that all examples of a property share."""
    home = tmp_path_factory.mktemp("threads")
    with Database(home, new_database(cluster)).connect("test") as made:
        show_lists(made, EVERY_LIST)
        yield made


@given(HISTORY, st.sampled_from([1, 2, 5, 100]))
@settings(max_examples=80)
def test_changes_in_portions_give_the_threads_of_a_full_build(
    connection: psycopg.Connection, history: list[tuple[int, Mails, bool, int | None]], portion: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step, "PORTION", portion)
        check_history(connection, history)


def check_history(
    connection: psycopg.Connection, history: list[tuple[int, Mails, bool, int | None]]
) -> None:
    connection.execute("truncate messages, threads, thread_aliases, thread_changes, partitions")
    for month, mails, built, hidden in [*history, (0, [], True, None)]:
        fill(connection, LISTS[month], mails)
        if hidden is not None:
            hide(connection, f"i{hidden:02}")
        if built:
            outcome = build_threads(connection, lambda line: None)
            messages = [*read_references(connection)]
            stored, expected = read_threads(connection, None), build_trees(messages)
            assert stored.nodes == sorted(expected, key=lambda n: (n.thread_id, n.position))
            said = {x: a for x, a in stored.aliases.items() if a.named}
            assert said == find_aliases(messages, expected, (), {})
            ghosts = sum(node.is_ghost for node in expected)
            figures = (len(expected) - ghosts, ghosts, len({n.thread_id for n in expected}))
            counts = outcome.counts
            assert figures == (counts["messages"], counts["ghosts"], counts["threads"])
            assert counts["aliases"] == len(stored.aliases)
            with connection.transaction(force_rollback=True):
                assert replace_threads(connection, stored, stored, "").digest == outcome.digest
            for x in stored.aliases.keys() | {node.message_id for node in stored.nodes}:
                assert find_place(connection, x) is not None

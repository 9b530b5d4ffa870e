"""Forgotten messages leave every table, file and index, stay out, and can be restored."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mail_assets.forgetting import clean
from mail_assets.forgetting import forget as step
from mail_assets.forgetting.forget import ForgetReport, ForgetRequest
from mail_assets.mail.message.ids import make_placeholder
from mail_assets.month import ListMonth
from mail_assets.postgres.programs import vector_cpu_ok
from mail_assets.reading.conversations import Conversation, read_thread
from mail_assets.steps.build_threads import build_threads
from mail_assets.store.embeddings import file_key, read_embeddings, write_embeddings
from mail_assets.tables.checks import MessageCounts, count_months
from mail_assets.tables.removals import find_placeholder, list_removals, withdraw_removals
from mail_assets.tables.removed_messages import unwanted_documents, unwanted_keys
from mail_assets.vectors.index import VectorError, VectorIndex
from mail_assets.words.index import WordsError
from mail_assets.words.lance import LanceWordIndex
from mail_assets_tests.kept_worlds import KeptWorlds
from mail_assets_tests.world import (
    APRIL,
    DIGESTS,
    HARBOR,
    MARCH,
    PIER,
    Killed,
    World,
    mail,
    read_documents,
)

SECRET = "The harbour master sleeps on Tuesdays."
#: Texts that must be nowhere: the words, the id and the address.
TRACES = ("sleeps on Tuesdays", "secret@example.org", "eve@example.net")

ROOT = mail("a")
FORGOTTEN = mail("secret", SECRET, sender="Eve@example.net", references="<a@example.org>")
ANSWER = mail("answer", references="<a@example.org> <secret@example.org>")
OTHER = mail("other", "Eve speaks of tides.", sender="eve@example.net")

MONTHS = [ListMonth(HARBOR, MARCH), ListMonth(HARBOR, APRIL), ListMonth(PIER, MARCH)]


def fill(world: World) -> None:
    for month in MONTHS:
        world.chain(month.month, month.list_name)
    world.threads()
    world.summaries()


def fill_world(world: World) -> None:
    """Two lists and two months; the forgotten message is in both lists, twice in one."""
    world.archive(MARCH, ROOT, FORGOTTEN, mail("b"), FORGOTTEN)
    world.archive(APRIL, ANSWER, OTHER)
    world.archive(MARCH, FORGOTTEN, mail("c"), list_name=PIER)
    fill(world)


def fill_with_pgvector(world: World) -> None:
    world.bucket = "pgvector:"
    fill_world(world)


BUCKETS = [
    pytest.param(fill_world, id="lance"),
    pytest.param(
        fill_with_pgvector,
        id="pgvector",
        marks=pytest.mark.skipif(not vector_cpu_ok(), reason="this CPU cannot run pgvector"),
    ),
]


@pytest.fixture
def filled(request: pytest.FixtureRequest, kept_worlds: KeptWorlds) -> Iterator[World]:
    with kept_worlds.filled(getattr(request, "param", fill_world)) as world:
        yield world


def forget(world: World, *names: str, senders: tuple[str, ...] = ()) -> ForgetReport:
    ids = {f"{name}@example.org" for name in names}
    return world.forget(ForgetRequest(ids, senders, "asked to", "the postmaster"))


def find_conversation(world: World, message_id: str) -> Conversation | None:
    """Return the conversation that a link leads to, as `mail-assets thread` does."""
    with world.connect() as connection:
        hidden = find_placeholder(connection, world.forget_key, message_id)
        return read_thread(connection, hidden or message_id)


def dump(world: World) -> str:
    ours = "schemaname not in ('pg_catalog', 'information_schema')"
    tables = world.rows("pg_tables", "schemaname, tablename", ours)
    return "\n".join(
        str(row)
        for schema, table in tables
        for row in world.rows(f'"{schema}"."{table}" as t', "t::text")
    )


def traces(world: World) -> list[str]:
    """Return the traces of the forgotten message in tables, index and embedding files."""
    index = world.index
    held = repr([v.metadata for v in index.get(index.keys(), data=True).values()])
    text = dump(world) + held + repr(read_documents(world.home / "words"))
    return [trace for trace in TRACES if trace.lower() in text.lower()]


def texts_agree(world: World) -> bool:
    """Return whether the files hold the vectors of the chunks, and no other."""
    held: set[bytes] = set()
    for key in world.store.keys("embeddings/"):
        held |= read_embeddings(world.store, key).keys()
    return held == {bytes(text_hash) for (text_hash,) in world.rows("chunks", "text_hash")}


def balanced(world: World) -> bool:
    with world.connect() as connection:
        counts = count_months(connection, MONTHS, MessageCounts)
        return all(one.balanced for one in counts.values())


def keys_agree(world: World) -> bool:
    chunks = {key for (key,) in world.rows("chunks", "key")}
    manifest = {key for (key,) in world.rows("vectors", "key")}
    if {*world.mail_words.index.keys()} != {key for (key,) in world.rows("words", "key")}:
        return False
    return {*world.index.keys()} == chunks == manifest


@pytest.mark.parametrize("filled", BUCKETS, indirect=True)
def test_forgotten_message_is_gone_and_stays_so_in_backfills(filled: World) -> None:
    assert traces(filled) == [*TRACES]
    report = forget(filled, "secret", senders=("EVE@example.net",))
    assert (len(report.copies), report.vectors, report.failed) == (3, 3, {})
    assert report.files == 3
    for again in range(3):
        assert traces(filled) == []
        assert texts_agree(filled)
        assert keys_agree(filled)
        assert balanced(filled)
        if again == 0:
            fill(filled)
        else:  # every archive has changed, and every month is read again
            filled.archive(MARCH, ROOT, FORGOTTEN, mail(f"new{again}"), FORGOTTEN, at=again)
            filled.archive(APRIL, ANSWER, OTHER, mail(f"newer{again}"), at=again)
            filled.archive(MARCH, FORGOTTEN, mail("c"), FORGOTTEN, list_name=PIER, at=again)
            fill(filled)
    assert filled.rows("messages", "message_id", f"list = '{PIER}'") == [("c@example.org",)]


@pytest.mark.parametrize("filled", BUCKETS, indirect=True)
def test_forgetting_leaves_what_loading_without_it_makes(
    filled: World, tmp_path: Path, mail_dsn: str
) -> None:
    forget(filled, "secret")
    left = filled.holds()
    with filled.connect() as connection:
        connection.execute(
            "truncate messages, chunks, threads, thread_aliases, thread_changes, partitions, "
            "removed_messages, vectors"
        )
    filled.index.drop()
    for key in [*filled.store.keys("embeddings/")]:
        filled.store.delete(key)
    fill(filled)
    made = filled.holds()
    for what in ("mbox_archives", "chunks", "manifest", "removed", "bucket"):
        assert left[what] == made[what], what
    # the hash of a row whose references were hidden is that of the row before
    plain = [(row[:5], row[6:]) for row in made["messages"]]  # type: ignore[attr-defined]
    assert [(row[:5], row[6:]) for row in left["messages"]] == plain  # type: ignore[attr-defined]


def test_other_mail_is_untouched(filled: World) -> None:
    where = "message_id <> 'secret@example.org' and message_id <> 'answer@example.org'"
    marks = "message_id, list, ctid::text, xmin::text"
    before = [filled.rows(table, marks, where) for table in ("messages", "chunks")]
    forget(filled, "secret")
    assert [filled.rows(table, marks, where) for table in ("messages", "chunks")] == before


def test_answers_stay_in_their_thread_under_a_placeholder(filled: World) -> None:
    forget(filled, "secret")
    hidden = make_placeholder(DIGESTS.of_message("secret@example.org"))
    for asked in ("a@example.org", "answer@example.org", "secret@example.org", hidden):
        found = find_conversation(filled, asked)
        assert found
        assert [(p.message_id, p.is_ghost) for p in found.posts] == [
            ("a@example.org", False),
            (hidden, True),
            ("answer@example.org", False),
        ]


def test_link_to_a_forgotten_leaf_leads_to_its_thread(world: World) -> None:
    world.archive(MARCH, ROOT, mail("0leaf", references="<a@example.org>"))
    world.fill(MARCH)
    assert {*world.rows("threads", "thread_id")} == {("0leaf@example.org",)}
    forget(world, "0leaf")
    found = find_conversation(world, "0leaf@example.org")
    assert found
    assert found.thread_id == "a@example.org"
    assert "0leaf" not in dump(world)


def test_threads_after_forgetting_are_those_of_a_full_build(filled: World) -> None:
    forget(filled, "secret", senders=("eve@example.net",))
    built = filled.rows("threads")
    with filled.connect() as connection:
        connection.execute("truncate threads, thread_aliases, partitions")
        build_threads(connection, filled.said.append)
    assert filled.rows("threads") == built


def test_later_mail_of_a_forgotten_sender_is_kept_out(filled: World) -> None:
    later = mail("later", "Eve is back.", sender="EVE@example.net")
    forget(filled, senders=("eve@example.net",))
    assert traces(filled) == []
    filled.archive(APRIL, ANSWER, mail("reply", references="<later@example.org>"), at=9)
    filled.fill(APRIL)
    assert "later@example.org" in dump(filled), "named by a reply before it came"
    filled.archive(MARCH, ROOT, FORGOTTEN, mail("b"), later, FORGOTTEN, at=9)
    filled.fill(MARCH)
    assert "later@example.org" not in dump(filled)
    hidden = make_placeholder(DIGESTS.of_message("later@example.org"))
    assert (hidden, True) in filled.rows("threads", "message_id, is_ghost")
    assert balanced(filled)


def test_id_of_a_forgotten_sender_stays_hidden_without_archive(world: World) -> None:
    by_eve = mail("root", sender="eve@example.net")
    answer = mail("answer", references="<root@example.org>")
    world.archive(MARCH, by_eve, answer, mail("b"))
    world.fill(MARCH)
    before = world.rows("messages", "message_id, refs", "message_id like 'answer@%'")
    forget(world, senders=("eve@example.net",))
    world.load(answer, mail("b"), at=1, last="vectors")
    world.archive(APRIL, mail("late", references="<root@example.org>"))
    world.fill(APRIL)
    assert "root@example.org" not in dump(world)
    hidden = make_placeholder(DIGESTS.of_message("root@example.org"))
    found = find_conversation(world, hidden)
    assert found
    assert [one.message_id for one in found.posts] == [
        hidden,
        "answer@example.org",
        "late@example.org",
    ]
    with world.connect() as connection:
        withdraw_removals(connection, [DIGESTS.of_sender("eve@example.net")])
    world.chain(MARCH)
    assert world.rows("messages", "message_id, refs", "message_id like 'answer@%'") == before


def test_next_load_unlearns_footers_of_forgotten_mail(world: World) -> None:
    footer = "\n\n_____\nharbour mailing list\n12 Quay Street"
    names = ("ann", "bob", "cy", "dee", "eve")
    letters = [
        mail(
            name,
            f"The tide of {name} is high.{footer}",
            sender=f"{name}@example.org",
            date=f"Mon, {4 + n:02} Mar 2024 09:00:00 +0000",
        )
        for n, name in enumerate(names)
    ]
    world.load(*letters, last="vectors")
    learnt = world.rows("messages", "message_id, segments", "message_id not like 'dee@%'")
    forget(world, "dee")
    world.chain(MARCH)
    after = world.rows("messages", "message_id, segments")
    with world.connect() as connection:
        connection.execute("update partitions set inputs = 'none' where asset = 'messages'")
    world.messages()
    assert world.rows("messages", "message_id, segments") == after != learnt


def test_forgotten_second_content_leaves_the_first(world: World) -> None:
    impostor = mail("a", "An impostor.", sender="eve@example.net")
    reply = mail("r", references="<a@example.org>")
    world.archive(MARCH, ROOT, impostor)
    world.archive(APRIL, reply)
    world.fill(MARCH, APRIL)
    thread = "thread_id = 'a@example.org'"
    before = world.rows("threads", where=thread)
    assert len(before) == 2
    forget(world, senders=("eve@example.net",))
    for again in range(2):
        assert "impostor" not in dump(world)
        assert world.rows("messages", "message_id, variant", "message_id like 'a@%'") == [
            ("a@example.org", 0)
        ]
        assert world.rows("threads", where=thread) == before
        world.archive(APRIL, reply, mail(f"x{again}"), at=1 + again)
        world.archive(MARCH, ROOT, impostor, mail(f"y{again}"), at=1 + again)
        world.fill(APRIL, MARCH)


def test_files_of_other_encoders_and_parts_are_cleaned_too(filled: World) -> None:
    key = file_key(ListMonth(HARBOR, MARCH), filled.encoder.fingerprint)
    vectors = read_embeddings(filled.store, key)
    others = [
        file_key(ListMonth(HARBOR, MARCH), "older"),
        f"embeddings/{HARBOR}/{MARCH}/x.parts/1.parquet",
    ]
    for other in others:
        write_embeddings(filled.store, other, vectors, "older")
    forget(filled, "secret")
    texts = {bytes(h) for (h,) in filled.rows("chunks", "text_hash", f"month = '{MARCH}'")}
    for other in (key, *others):
        held = read_embeddings(filled.store, other).keys()
        assert held < vectors.keys()
        assert held <= texts


def test_month_of_nothing_else_keeps_no_file(world: World) -> None:
    world.load(FORGOTTEN, last="vectors")
    forget(world, "secret")
    assert [*world.store.keys("embeddings/")] == []
    assert [*world.index.keys()] == []
    [(texts,)] = world.rows("partitions", "(counts->>'texts')::int", "asset = 'embeddings'")
    assert texts == 0
    fill_one = world.chain(MARCH)
    assert fill_one["vectors"].counts["written"] == 0


@pytest.mark.parametrize("filled", BUCKETS, indirect=True)
def test_vector_index_out_of_reach_is_cleaned_by_the_next_run(
    filled: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(index: VectorIndex, keys: Any) -> None:
        raise VectorError(f"{index.label}: is down")

    monkeypatch.setattr(clean, "_delete_vectors", down)
    report = forget(filled, "secret")
    [(name, why)] = report.failed.items()
    assert name.startswith(filled.bucket)
    assert why.endswith("is down")
    with filled.connect() as connection:
        assert len(unwanted_keys(connection)[name]) == 2
    monkeypatch.undo()
    report = forget(filled, "secret")
    assert (report.copies, report.vectors, report.failed) == ([], 2, {})
    assert keys_agree(filled)


def test_word_index_out_of_reach_is_cleaned_by_the_next_run(
    filled: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(index: LanceWordIndex, *, erase: bool) -> None:
        raise WordsError(f"{index.label}: is down")

    monkeypatch.setattr(LanceWordIndex, "maintain", down)
    report = forget(filled, "secret")
    name = filled.mail_words.manifest.index_name
    assert report.failed == {name: f"{filled.mail_words.index.label}: is down"}
    with filled.connect() as connection:
        assert len(unwanted_documents(connection)[name]) == 2
    monkeypatch.undo()
    report = forget(filled, "secret")
    assert (report.copies, report.documents, report.failed) == ([], 2, {})
    assert keys_agree(filled)
    assert forget(filled, "secret").documents == 0


def test_old_versions_are_erased_after_a_run_deleted_a_key(filled: World) -> None:
    """Between a forgetting that was killed and the next a run may delete it, and not erase it."""
    [(key,)] = filled.rows("words", "key", f"month = '{APRIL}' limit 1")
    filled.mail_words.index.delete([key])
    assert files_holding(filled, key)
    forget(filled, "nobody")
    assert files_holding(filled, key) == []


def files_holding(world: World, text: str) -> list[Path]:
    files = [path for path in (world.home / "words").rglob("*") if path.is_file()]
    return [path for path in files if text.encode() in path.read_bytes()]


def test_kill_before_the_indexes_is_finished_by_the_next_run(
    filled: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: Any) -> None:
        raise Killed

    monkeypatch.setattr(step, "build_threads", kill)
    with pytest.raises(Killed):
        forget(filled, "secret")
    monkeypatch.undo()
    assert not texts_agree(filled)
    forget(filled, "secret")
    assert [t for t in traces(filled) if t != "eve@example.net"] == []
    assert texts_agree(filled)
    assert keys_agree(filled)


def test_list_of_removals_has_reasons_and_no_mail(filled: World) -> None:
    forget(filled, "secret", senders=("eve@example.net",))
    forget(filled, "secret")
    with filled.connect() as connection:
        removals = {removal.kind: removal for removal in list_removals(connection)}
    assert removals["message"].digest == DIGESTS.of_message("secret@example.org")
    assert removals["sender"].digest == DIGESTS.of_sender(" Eve@Example.net ")
    assert {(r.reason, r.removed_by) for r in removals.values()} == {("asked to", "the postmaster")}
    assert {kind: r.copies for kind, r in removals.items()} == {"message": 2, "sender": 1}


@pytest.mark.parametrize("filled", BUCKETS, indirect=True)
def test_withdrawn_removal_brings_mail_with_the_next_backfill(filled: World) -> None:
    before = filled.holds()
    threads = filled.rows("threads")
    forget(filled, "secret", senders=("eve@example.net",))
    digests = [DIGESTS.of_message("secret@example.org"), DIGESTS.of_sender("eve@example.net")]
    with filled.connect() as connection:
        assert withdraw_removals(connection, [b"unheard"]) == (0, [])
        count, months = withdraw_removals(connection, digests)
    assert count == 2
    assert months == sorted(MONTHS)
    fill(filled)
    after = filled.holds()
    for what in ("messages", "words", "documents", "chunks", "manifest", "removed", "bucket"):
        assert after[what] == before[what], what
    assert filled.rows("threads") == threads


def test_message_that_never_arrived_is_kept_out_too(filled: World) -> None:
    report = forget(filled, "unheard")
    assert (report.copies, report.chunks, report.vectors, report.files) == ([], 0, 0, 0)
    filled.load(ROOT, FORGOTTEN, mail("b"), FORGOTTEN, mail("unheard"), at=3, last="vectors")
    assert not re.search(r"\bunheard", dump(filled))
    assert balanced(filled)

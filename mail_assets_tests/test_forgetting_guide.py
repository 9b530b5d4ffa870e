"""Each line of the table of docs/forgetting.md is proved, by a test here or by one named here."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest

from mail_assets.forgetting.forget import ForgetRequest
from mail_assets.month import ListMonth
from mail_assets.postgres.embedded import SERVER_SETTINGS, Cluster
from mail_assets.tables.encoded_texts import keep_encoded
from mail_assets.tables.mbox_archives import record_vanished
from mail_assets_tests.conftest import REPOSITORY
from mail_assets_tests.databases import drop_database, new_database
from mail_assets_tests.world import APRIL, DIGESTS, HARBOR, MARCH, World, mail

TESTS = REPOSITORY / "mail_assets_tests"
PLACES = re.findall(
    r"^\| (?!place|-)([^|]+) \|", (REPOSITORY / "docs" / "forgetting.md").read_text(), re.MULTILINE
)

EVE = "eve@example.net"
SECRET = "The harbour master sleeps on Tuesdays."
TRACES = ("sleeps on Tuesdays", "secret@example.org", EVE, "tuesday plan")
BAD = b"From x@y Mon Mar  4 09:00:00 2024\n\n\n"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster) -> Iterator[World]:
    """A world in which a message was stored and forgotten, with its sender; it is only read.

    The server keeps its log of all that is written, as for a copy of it.
    """
    made = World(tmp_path_factory.mktemp("guide"), new_database(cluster))
    with made.connect() as connection:
        connection.execute("select pg_create_physical_replication_slot('guide', true)")
    secret = mail("secret", SECRET, sender=EVE, subject="tuesday plan")
    made.archive(MARCH, mail("a"), secret, mail("b"))
    made.archive(
        APRIL,
        mail("answer", references="<secret@example.org>", headers=f"To: Eve <{EVE}>\nCc: {EVE}"),
        mail("c"),
    )
    for month in (MARCH, APRIL):
        made.chain(month)
    made.threads()
    made.summaries()
    (made.home / "cache").mkdir()
    (made.home / "cache" / "mirror").write_text(SECRET)
    with made.connect() as connection:
        connection.execute("analyze")
    assert all(trace in rows(made, "messages") for trace in TRACES)
    assert SECRET in rows(made, "thread_summaries")
    texts = {bytes(text): np.ones(3, np.float32) for (text,) in made.rows("chunks", "text_hash")}
    with made.connect() as connection:
        keep_encoded(connection, "encoder", texts)
        vanished = {"digest": "gone@example.org"}
        record_vanished(connection, ListMonth(HARBOR, MARCH), vanished, "former")
    ids = ["secret@example.org", "gone@example.org"]
    made.forget(ForgetRequest(ids, [EVE], "asked to", "the postmaster"))
    yield made
    with made.connect() as connection:
        connection.execute("select pg_drop_replication_slot('guide')")
    drop_database(cluster, made.dsn)


def rows(world: World, *tables: str) -> str:
    """Return all rows of tables as text."""
    return "\n".join(repr(world.rows(f"{table} as t", "t::text")) for table in tables)


def has_no_traces(*tables: str) -> Callable[[World], None]:
    def prove(world: World) -> None:
        text = rows(world, *tables).lower()
        assert [trace for trace in TRACES if trace.lower() in text] == []

    return prove


def references_hold_a_placeholder(world: World) -> None:
    [(refs,)] = world.rows("messages", "refs", "message_id = 'answer@example.org'")
    assert [ref.endswith("@forgotten.invalid") for ref in refs] == [True]


def addresses_hold_a_placeholder(world: World) -> None:
    [(to, cc)] = world.rows("messages", "recipients, cc", "message_id = 'answer@example.org'")
    assert (to, cc) == (["forgotten@forgotten.invalid"], ["forgotten@forgotten.invalid"])


def entries_hold_a_place_and_no_id(world: World) -> None:
    found = world.rows(
        "archive_entries", "archive_length > 0, digest <> '', message_id", "outcome = 'removed'"
    )
    assert found == [(True, True, None)]
    has_no_traces("archive_entries")(world)


def removals_hold_keyed_digests(world: World) -> None:
    has_no_traces("removals", "forget_keys")(world)
    wanted = {DIGESTS.of_message(f"{name}@example.org") for name in ("secret", "gone")}
    wanted.add(DIGESTS.of_sender(EVE))
    assert {bytes(digest) for (digest,) in world.rows("removals", "digest")} == wanted


def vanished_mail_is_recorded_no_more(world: World) -> None:
    assert world.rows("removed_upstream") == []


def encoded_texts_are_those_of_chunks(world: World) -> None:
    kept = world.rows("encoded_texts", "text_hash")
    assert kept == world.rows("chunks", "text_hash")
    assert len(kept) == 4


def quarantine_holds_no_text(world: World) -> None:
    columns = world.rows("information_schema.columns", "column_name", "table_name = 'quarantine'")
    places = {"list", "month", "ordinal", "archive_offset", "archive_length"}
    assert {name for (name,) in columns} == places | {"reason", "parser_version"}


def statistics_hold_no_traces(world: World) -> None:
    values = "most_common_vals::text, histogram_bounds::text, most_common_elems::text"
    text = repr(world.rows("pg_stats", values, "schemaname = 'public'")).lower()
    assert "about a" in text
    assert [trace for trace in TRACES if trace in text] == []


def find_bytes(connection: psycopg.Connection, files: str) -> bool:
    """Return whether files of the server hold the text; `files` selects their paths."""
    query = f"""select bool_or(position(%s::bytea in pg_read_binary_file(path)) > 0)
                  from ({files}) as f (path)"""
    row = connection.execute(query.encode(), [SECRET.encode()]).fetchone()
    return bool(row and row[0])


def dead_rows_stay_until_vacuum(world: World) -> None:
    heap = "values (pg_relation_filepath('messages')), (pg_relation_filepath('chunks'))"
    with world.connect() as connection:
        connection.execute("checkpoint")
        assert find_bytes(connection, heap)
        connection.execute("vacuum full messages, chunks")
        connection.execute("checkpoint")
        assert not find_bytes(connection, heap)


def the_write_ahead_log_stays(world: World) -> None:
    with world.connect() as connection:
        assert find_bytes(connection, "select 'pg_wal/' || name from pg_ls_waldir()")


def the_embedded_server_logs_no_statements(world: World) -> None:
    with world.connect() as connection:
        for setting in ("log_statement", "log_min_duration_statement"):
            row = connection.execute("select current_setting(%s)", [setting]).fetchone()
            assert row in (("none",), ("-1",))
    assert "log_statement" not in SERVER_SETTINGS


def no_file_of_lancedb_holds_it(world: World) -> None:
    index = world.index
    held = repr([one.metadata for one in index.get(index.keys(), data=True).values()])
    assert [trace for trace in TRACES if trace in held.lower()] == []
    paths = [path for path in (world.home / "vectors").rglob("*") if path.is_file()]
    files = b"".join(path.read_bytes() for path in paths).lower()
    assert [trace for trace in TRACES if trace.lower().encode() in files] == []
    assert b"harbor" in files


def no_byte_is_left_in_the_word_index(world: World) -> None:
    index = world.mail_words.index
    assert index.count() == len(world.rows("messages"))
    assert files_holding(world.home / "words", b"tuesday", b"sleep", b"secret@") == []
    assert files_holding(world.home / "words", b"answer@example.org"), "others stay"


def files_holding(folder: Path, *words: bytes) -> list[Path]:
    """Return the files below a folder that hold one of some words; none is compressed."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if any(word in path.read_bytes() for word in words)]


def older_versions_on_s3_stay(world: World) -> None:
    source = (REPOSITORY / "mail_assets" / "store" / "s3.py").read_text()
    assert "VersionId" not in source


def logs_hold_no_traces(world: World) -> None:
    assert world.said
    text = "\n".join(world.said).lower()
    assert [trace for trace in TRACES if trace.lower() in text] == []


def mirrors_stay(world: World) -> None:
    assert (world.home / "cache" / "mirror").read_text() == SECRET


def the_source_is_not_touched(world: World) -> None:
    assert SECRET in (world.folder() / f"harbor.{MARCH}.mbox").read_text()


Proof = Callable[[World], None] | str

#: The first cell of each line -> what proves it; a name is FILE::TEST below mail_assets_tests.
PROOFS: dict[str, Proof] = {
    "`messages` and its full text": has_no_traces("messages"),
    "`senders`": has_no_traces("senders"),
    "`contested_texts`": has_no_traces("contested_texts"),
    "`chunks`": has_no_traces("chunks"),
    "`threads`, `thread_aliases`, `thread_changes`": has_no_traces(
        "threads", "thread_aliases", "thread_changes"
    ),
    "`thread_summaries`, `summary_changes`": has_no_traces("thread_summaries", "summary_changes"),
    "`patches`": "steps/test_read_patches.py::test_forgotten_mail_and_people_are_in_no_patch",
    "`patch_series`, `patch_outcomes`, `patch_keys`, `patch_changes`": (
        "steps/test_group_series.py::test_forgotten_mail_leaves_no_trace"
    ),
    "`commits`": ("steps/test_link_commits.py::test_forgotten_id_does_not_come_back_from_a_commit"),
    "`commit_links`": "steps/test_link_commits.py::test_forgotten_mail_is_linked_no_more",
    "References and In-Reply-To of other mail": references_hold_a_placeholder,
    "To, Cc and Reply-To of other mail": addresses_hold_a_placeholder,
    "Subjects and texts of other mail, quotes among them": (
        "forgetting/test_people.py::test_mentions_in_text_stay_and_are_counted"
    ),
    "`encoded_texts`": encoded_texts_are_those_of_chunks,
    "`archive_entries`": entries_hold_a_place_and_no_id,
    "`removed_messages`, `cut_messages`": has_no_traces("removed_messages", "cut_messages"),
    "`removed_upstream`": vanished_mail_is_recorded_no_more,
    "`removals`, `forget_keys`": removals_hold_keyed_digests,
    "`served_searches`, `search_audit`": (
        "web/test_audit.py::test_audit_counts_field_names_and_no_values"
    ),
    "`quarantine`": quarantine_holds_no_text,
    "`partitions`, `mbox_archives`": has_no_traces("partitions", "mbox_archives"),
    "`vectors` and `words`, the manifests": (
        "forgetting/test_forget_messages.py::"
        "test_vector_index_out_of_reach_is_cleaned_by_the_next_run"
    ),
    "Statistics of the planner (`pg_stats`)": statistics_hold_no_traces,
    "Dead rows and index pages of PostgreSQL": dead_rows_stay_until_vacuum,
    "Write-ahead log and backups of PostgreSQL": the_write_ahead_log_stays,
    "Log of PostgreSQL": the_embedded_server_logs_no_statements,
    "Files of embeddings, of any encoder, and parts of a killed run": (
        "forgetting/test_forget_messages.py::test_files_of_other_encoders_and_parts_are_cleaned_too"
    ),
    "LanceDB, the index": no_file_of_lancedb_holds_it,
    "The word index in LanceDB": no_byte_is_left_in_the_word_index,
    "pgvector and the bucket services": (
        "forgetting/test_forget_messages.py::"
        "test_forgotten_message_is_gone_and_stays_so_in_backfills"
    ),
    "Archives as fetched, with `--archives keep`": (
        "forgetting/test_archives.py::test_archive_that_still_holds_it_is_named"
    ),
    "Archives as fetched, with `--archives rewrite`": (
        "forgetting/test_archives.py::test_no_fetch_brings_a_cut_message_back"
    ),
    "Former archives of the month": (
        "forgetting/test_archives.py::test_former_archives_are_named_and_rewritten_too"
    ),
    "Older versions in a versioned S3 bucket": older_versions_on_s3_stay,
    "Runs of assets in Dagster's event log": (
        "defs/assets/test_months.py::test_event_log_holds_no_mail"
    ),
    "Answers of `test_queries` in Dagster's event log": (
        "cli/test_forget.py::test_forget_deletes_answers_of_test_queries"
    ),
    "Logs of runs and compute logs": logs_hold_no_traces,
    "Mirrors of public-inbox repositories (`MAIL_HOME/cache`)": mirrors_stay,
    "The source": the_source_is_not_touched,
}


def test_every_line_has_a_proof_and_every_proof_a_line() -> None:
    assert len(PLACES) == len({*PLACES})
    assert {*PLACES} == PROOFS.keys()


@pytest.mark.parametrize("place", [x for x, proof in PROOFS.items() if isinstance(proof, str)])
def test_the_test_that_proves_a_line_exists(place: str) -> None:
    file, _, name = str(PROOFS[place]).partition("::")
    tree = ast.parse((TESTS / file).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("place", [x for x, proof in PROOFS.items() if callable(proof)])
def test_a_line_is_true(world: World, place: str) -> None:
    proof = PROOFS[place]
    assert callable(proof)
    proof(world)

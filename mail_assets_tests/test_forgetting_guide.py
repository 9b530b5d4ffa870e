"""Each line of the table in docs/forgetting.md has a proof: a test here, or one named here."""

import re
from collections.abc import Callable, Iterator

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


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster) -> Iterator[World]:
    """A world in which a message and its sender were forgotten; tests only read it.

    The server keeps its write-ahead log, as for a replica.
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


def references_hold_a_placeholder(world: World) -> None:
    [(refs,)] = world.rows("messages", "refs", "message_id = 'answer@example.org'")
    assert [ref.endswith("@forgotten.invalid") for ref in refs] == [True]


def entries_hold_a_place_and_no_id(world: World) -> None:
    found = world.rows(
        "archive_entries", "archive_length > 0, digest <> '', message_id", "outcome = 'removed'"
    )
    assert found == [(True, True, None)]


def removals_hold_keyed_digests(world: World) -> None:
    wanted = {DIGESTS.of_message(f"{name}@example.org") for name in ("secret", "gone")}
    wanted.add(DIGESTS.of_sender(EVE))
    assert {bytes(digest) for (digest,) in world.rows("removals", "digest")} == wanted


def encoded_texts_are_those_of_chunks(world: World) -> None:
    kept = world.rows("encoded_texts", "text_hash")
    assert kept == world.rows("chunks", "text_hash")
    assert len(kept) == 4


def quarantine_holds_no_text(world: World) -> None:
    columns = world.rows("information_schema.columns", "column_name", "table_name = 'quarantine'")
    places = {"list", "month", "ordinal", "archive_offset", "archive_length"}
    assert {name for (name,) in columns} == places | {"reason", "parser_version"}


def find_bytes(connection: psycopg.Connection, files: str) -> bool:
    """Return True if files of the server contain the text; `files` selects their paths."""
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


EVERYWHERE = "forgetting/test_everywhere.py::test_forgotten_mail_leaves_no_trace"

Proof = Callable[[World], None] | str | None

#: First cell of each line -> its proof: a function here, or FILE::TEST of this folder; None for
#: places where forgotten mail remains, because the command does not look there.
PROOFS: dict[str, Proof] = {
    "`messages` and its full text, `senders`, `contested_texts`, `chunks`": EVERYWHERE,
    "`encoded_texts`": encoded_texts_are_those_of_chunks,
    "`threads`, `thread_aliases`, `thread_changes`": EVERYWHERE,
    "`patches`": "steps/test_read_patches.py::test_forgotten_mail_and_people_are_in_no_patch",
    "`patch_series`, `patch_states`, `patch_outcomes`, `patch_keys`, `patch_changes`": (
        "steps/test_group_series.py::test_forgotten_mail_leaves_no_trace"
    ),
    "`commits`": "steps/test_link_commits.py::test_forgotten_id_does_not_come_back_from_a_commit",
    "`commit_links`": "steps/test_link_commits.py::test_forgotten_mail_loses_its_links",
    "`thread_summaries`, `summary_changes`": EVERYWHERE,
    "References and In-Reply-To of other mail": references_hold_a_placeholder,
    "To, Cc and Reply-To of other mail": (
        "forgetting/test_people.py::test_address_is_replaced_now_and_at_every_later_load"
    ),
    "Subjects and texts of other mail, quotes among them": (
        "forgetting/test_people.py::test_mentions_in_text_stay_and_are_counted"
    ),
    "`archive_entries`": entries_hold_a_place_and_no_id,
    "`removed_messages`, `cut_messages`": EVERYWHERE,
    "`removed_upstream`": (
        "forgetting/test_vanished.py::test_vanished_mail_is_forgotten_now_and_when_it_returns"
    ),
    "`removals`, `forget_keys`": removals_hold_keyed_digests,
    "`served_searches`, `search_audit`": (
        "web/test_audit.py::test_audit_counts_field_names_and_no_values"
    ),
    "`quarantine`": quarantine_holds_no_text,
    "`partitions`, `mbox_archives`": EVERYWHERE,
    "`vectors` and `words`, the manifests": (
        "forgetting/test_forget_messages.py::"
        "test_vector_index_out_of_reach_is_cleaned_by_the_next_run"
    ),
    "Statistics of the planner (`pg_stats`)": EVERYWHERE,
    "Dead rows and index pages of PostgreSQL": dead_rows_stay_until_vacuum,
    "Write-ahead log and backups of PostgreSQL": the_write_ahead_log_stays,
    "Log of PostgreSQL": the_embedded_server_logs_no_statements,
    "Files of embeddings, of any encoder, and parts of a killed run": (
        "forgetting/test_forget_messages.py::test_files_of_other_encoders_and_parts_are_cleaned_too"
    ),
    "LanceDB, the index": EVERYWHERE,
    "The word index in LanceDB": EVERYWHERE,
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
    "Older versions in a versioned S3 bucket": None,
    "Runs of assets in Dagster's event log": EVERYWHERE,
    "Answers of `test_queries` in Dagster's event log": (
        "cli/test_forget.py::test_forget_deletes_answers_of_test_queries"
    ),
    "Logs of runs and compute logs": EVERYWHERE,
    "Mirrors of public-inbox repositories (`MAIL_HOME/cache`)": None,
    "The source": None,
}


def test_every_line_has_a_proof_and_every_proof_a_line() -> None:
    assert len(PLACES) == len({*PLACES})
    assert {*PLACES} == PROOFS.keys()
    for named in {proof for proof in PROOFS.values() if isinstance(proof, str)}:
        file, _, name = named.partition("::")
        assert f"\ndef {name}(" in (TESTS / file).read_text(), named


@pytest.mark.parametrize("place", [x for x, proof in PROOFS.items() if callable(proof)])
def test_a_line_is_true(world: World, place: str) -> None:
    proof = PROOFS[place]
    assert callable(proof)
    proof(world)

"""Each check passes on the result of the chain, and fails on each of its faults."""

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import LiteralString, NamedTuple

import dagster as dg
import pytest

from mail_assets.defs.checks.index import spans_point_into_bodies, tokens_in_range
from mail_assets.defs.checks.mail import (
    accounted_for,
    few_quarantined,
    few_undated,
    few_unthreaded,
    forgotten_stay_forgotten,
)
from mail_assets.defs.checks.months import CheckedMonth, month_result
from mail_assets.defs.definitions import CHECKS
from mail_assets.defs.failures import MONTHS_MADE, read_failures
from mail_assets.defs.partitions import asset_key
from mail_assets.encoding.models import compute_fingerprint
from mail_assets.forgetting.forget import ForgetRequest, forget_messages
from mail_assets.indexes.vectors import open_known_index
from mail_assets.month import ListMonth, months_between
from mail_assets.postgres.statements import statement
from mail_assets.store.embeddings import file_key, read_embeddings, write_embeddings
from mail_assets.tables.indexes import NewIndex, make_first_live, record_index
from mail_assets.vectors.index import Vector
from mail_assets.words.index import Document
from mail_assets_tests.defs.dagster_world import (
    CHAIN,
    DagsterWorld,
    KeptDagster,
    failure,
    kept_dagster,
)
from mail_assets_tests.world import APRIL, HARBOR, MARCH, MAY, PROFILE, Hashing, mail

#: Checks, except those of measurements, commits and failed months: their assets have own tests.
OF_THE_CHAIN = [
    check
    for check in CHECKS
    if not {key.asset_key.path[-1] for key in check.check_keys}
    & {"search_quality", "commits", "commit_links"}
    and all(key.name != MONTHS_MADE for key in check.check_keys)
]

COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress}


def fill(world: DagsterWorld, patch: pytest.MonkeyPatch) -> None:
    """Fill two months, recorded by Dagster, with the real fingerprint and hashed vectors."""
    patch.setattr(Hashing, "fingerprint", compute_fingerprint(PROFILE, "int8"))
    answers = {f"{MARCH}.9": f"<{MARCH}.7@example.org>"}
    for month, count in [(MARCH, 60), (APRIL, 1)]:
        names = [f"{month}.{n}" for n in range(count)]
        world.load(
            *(mail(x, references=answers.get(x, "")) for x in names), month=month, last="vectors"
        )
    with world.connect() as connection:
        name = world.index.spec.name
        record = NewIndex(name, PROFILE, "int8", Hashing.fingerprint)
        record_index(connection, world.bucket, record)
        make_first_live(connection, world.bucket, name)
    world.threads()
    world.summaries()
    # these sentences of a dozen words are shorter than an encoder's target
    with world.connect() as connection:
        connection.execute("update chunks set tokens = 100")
    for month in (MARCH, APRIL):
        for asset in CHAIN:
            event = dg.AssetMaterialization(asset_key(asset), partition=f"{HARBOR}|{month}")
            world.instance.report_runless_asset_event(event)


done = kept_dagster(fill)


@pytest.fixture
def world(
    done: KeptDagster, model_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DagsterWorld]:
    monkeypatch.setattr(Hashing, "fingerprint", compute_fingerprint(PROFILE, "int8"))
    with done.copied(model_cache, monkeypatch) as made:
        yield made


Spoil = Callable[[DagsterWorld], None]


def sql(statement: str) -> Spoil:
    def spoil(world: DagsterWorld) -> None:
        with world.connect() as connection:
            connection.execute(statement.encode())

    return spoil


def no_messages_in_bytes(world: DagsterWorld) -> None:
    with world.connect() as connection:
        connection.execute(b"delete from messages where month = '2024-03'")
        connection.execute(b"update mbox_archives set found = 0 where month = '2024-03'")


def vectors_of_another_encoder(world: DagsterWorld) -> None:
    key = file_key(ListMonth(HARBOR, MARCH), compute_fingerprint(PROFILE, "int8"))
    write_embeddings(world.store, key, read_embeddings(world.store, key), "another")


def no_file(world: DagsterWorld) -> None:
    world.store.delete(file_key(ListMonth(HARBOR, MARCH), compute_fingerprint(PROFILE, "int8")))


def key_lost(world: DagsterWorld) -> None:
    [(key,), *_] = world.rows("vectors", "key", "month = '2024-03'")
    world.index.delete([key])


def document_lost(world: DagsterWorld) -> None:
    [(key,), *_] = world.rows("words", "key", "month = '2024-03'")
    world.mail_words.index.delete([key])


def foreign_key(world: DagsterWorld) -> None:
    [(key,), *_] = world.rows("vectors", "key", "month = '2024-03'")
    [vector] = world.index.get([key], data=True).values()
    world.index.put([Vector("foreign#0", vector.values, vector.metadata)])


JUNE = "2024-06"
FORGOTTEN = "2024-03.7@example.org"


def forget(world: DagsterWorld) -> None:
    with world.workspace() as workspace:
        forget_messages(
            workspace,
            ForgetRequest([FORGOTTEN], ["eve@example.net"], "asked to", "the postmaster"),
            lambda index: open_known_index(world.settings().database, index),
        )


def forgotten_and(statement: str) -> Spoil:
    """Return a function that forgets a message of March and restores it by a statement."""

    def spoil(world: DagsterWorld) -> None:
        forget(world)
        sql(statement)(world)

    return spoil


def forgotten_text(world: DagsterWorld) -> None:
    about = compute_fingerprint(PROFILE, "int8")
    key = file_key(ListMonth(HARBOR, MARCH), about)
    vectors = read_embeddings(world.store, key)
    forget(world)
    write_embeddings(world.store, key, vectors, about)


def forgotten_vector(world: DagsterWorld) -> None:
    [(key,)] = world.rows("chunks", "key", f"message_id = '{FORGOTTEN}'")
    vectors = world.index.get([key], data=True)
    forget(world)
    world.index.put(vectors.values())


def forgotten_document(world: DagsterWorld) -> None:
    forget(world)
    [(key,)] = world.rows("removed_messages", "key_prefix")
    month = ListMonth(HARBOR, MARCH)
    world.mail_words.index.put([Document(key, month, FORGOTTEN, 0, 0, "", (), ("eve",))])


def name_of(key: dg.AssetCheckKey) -> str:
    """Return the name of a check; checks of words and of vectors have the same names."""
    asset = key.asset_key.path[-1]
    return f"{asset} {key.name}" if asset == "words" else key.name


class Fault(NamedTuple):
    """A fault in March, and the check that must find it."""

    check: str
    what: str
    spoil: Spoil


SEVEN, EIGHT = (f"where message_id = '2024-03.{n}@example.org'" for n in (7, 8))
OF_SEVEN = SEVEN.replace("message_id", "thread_id")
OF_MARCH = "where month = '2024-03'"
SENTENCES = f"update thread_summaries set sentences = jsonb_set(sentences, {{}}) {OF_SEVEN}"
STRANGER = "2024-03.8@example.org"
#: Check -> fault -> the statement or function that causes it.
SPOILT: dict[str, dict[str, str | Spoil]] = {
    "dialect_fits": {
        "another dialect": f"update mbox_archives set found_dialect = 'pipermail' {OF_MARCH}",
    },
    "accounted_for": {"a row is gone": f"delete from messages {SEVEN}",
                      "bytes without a message": no_messages_in_bytes},
    "few_quarantined": {
        "one in 60": "insert into quarantine values ('harbor', '2024-03', 99, 0, 1, 'x', '1')",
    },
    "few_undated": {"one in 15": f"update messages set date_source = 'archive' {OF_MARCH} "
                    "and message_id ~ '[05]@'"},
    "few_unthreaded": {"answers that refer to nothing": "update messages set is_answer = true "
                       "where message_id ~ '[.][0-3]@'",
                       "a message that threads does not know": f"delete from threads {SEVEN}"},
    "sentences_stand": {
        "other characters": SENTENCES.format("'{0,start}', '1'"),
        "no characters": SENTENCES.format("'{0,end}', '0'").replace(
            "set sentences", "set verbatim = false, sentences"
        ),
        "characters after the end": SENTENCES.format("'{0,end}', '9999'"),
        "a message of another thread": SENTENCES.format(f"'{{0,message_id}}', '\"{STRANGER}\"'"),
        "also one of another thread": SENTENCES.format(f"'{{0,also}}', '[\"{STRANGER}\"]'"),
    },
    "summaries_current": {
        "a thread without": f"delete from thread_summaries {OF_SEVEN}",
        "a summary of a former thread": f"update thread_summaries set content_hash = '' {OF_SEVEN}",
        "a thread that waits": f"insert into summary_changes values ('{FORGOTTEN}')",
    },
    "patches_accounted_for": {
        "a diff without a row": f"update messages set segments = '[[0, 5, \"patch\"]]' {SEVEN}",
    },
    "few_malformed": {
        "all of 20": "insert into patches select 'harbor', '2024-03', 'p', 0, n, 'patch', 'body', "
        "'', '', '', '', '{}', 1, null, null, '', '', now(), '', '[]', 0, 0, 0, '{}', '', '{}', "
        "'', '[]', '{}', 'cut off', '{}' from generate_series(1, 20) n",
    },
    "series_complete": {
        "a patch in no series": f"insert into patches select 'harbor', '2024-03', '{FORGOTTEN}', "
        "0, 0, 'patch', 'body', '', '', '', '', '{}', 1, null, null, '', '', now(), '', '[]', 0, "
        "0, 0, '{}', '', '{}', '', '[]', '{}', '', '{}'; delete from patch_changes",
    },
    "spans_point_into_bodies": {
        "a body changed": f"update messages set body_text = 'x' || body_text {OF_MARCH}",
    },
    "tokens_in_range": {"a chunk too long": "update chunks set tokens = 9999 where key = "
                        f"(select min(key) from chunks {OF_MARCH})",
                        "chunks too short": f"update chunks set tokens = 2 {OF_MARCH}"},
    "one_fingerprint": {"another encoder's vectors": vectors_of_another_encoder,
                        "no file": no_file},
    "keys_agree": {"a vector lost": key_lost, "a vector nobody wrote": foreign_key,
                   "a key not marked as written": f"update vectors set written = false {OF_MARCH}",
                   "a chunk without a vector": f"update chunks set key = 'x' || key {OF_MARCH}"},
    "words keys_agree": {
        "a document lost": document_lost,
        "no document": f"update messages set message_id = 'x' || message_id {OF_MARCH}",
    },
    "forgotten_stay_forgotten": {
        **{
            what: forgotten_and(f"{statement} {EIGHT}")
            for what, statement in {
                "a row": f"update messages set message_id = '{FORGOTTEN}'",
                "a reference": f"update messages set refs = '{{{FORGOTTEN}}}'",
                "a recipient": "update messages set recipients = "
                "'{Ann <ann@example.org>, Eve <Eve@example.net>}'",
                "a name": "update messages set from_name = 'eve@example.net via harbor'",
                "a thread": f"update threads set root_id = '{FORGOTTEN}'",
                "a chunk": "update chunks set key = "
                "(select key_prefix || '#0' from removed_messages)",
            }.items()
        },
        "a link to a thread": forgotten_and(
            f"insert into thread_aliases values ('{FORGOTTEN}', '{STRANGER}', false)"
        ),
        "a text in a file": forgotten_text,
        "a vector": forgotten_vector,
        "a document of words": forgotten_document,
    },
}  # fmt: skip
FAULTS = [
    Fault(check, what, sql(spoil) if isinstance(spoil, str) else spoil)
    for check, faults in SPOILT.items()
    for what, spoil in faults.items()
]


def test_checks_pass_on_what_the_chain_makes(world: DagsterWorld) -> None:
    for check in OF_THE_CHAIN:
        assert world.check(check).passed, check


def test_every_check_of_the_chain_has_a_fault() -> None:
    assert {key.name for check in OF_THE_CHAIN for key in check.check_keys} <= {
        fault.rpartition(" ")[2] for fault in SPOILT
    }


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.check}: {fault.what}")
def test_check_names_the_month_of_a_fault(world: DagsterWorld, fault: Fault) -> None:
    fault.spoil(world)
    keys = {name_of(key): (key, check) for check in OF_THE_CHAIN for key in check.check_keys}
    key, check = keys[fault.check]
    evaluation = world.check(check)
    assert not evaluation.passed
    blocking = world.defs.resolve_asset_graph().get(key).blocking
    wanted = dg.AssetCheckSeverity.ERROR if blocking else dg.AssetCheckSeverity.WARN
    assert evaluation.severity == wanted
    assert (evaluation.description or "").startswith(f"failed: {HARBOR} {MARCH}")
    assert evaluation.metadata["failed_months"].value == 1
    [record] = evaluation.metadata["months"].records  # type: ignore[attr-defined]
    assert record.data["month"] == f"{HARBOR}|{MARCH}"


REMEDY = (
    "; if a run does not repair it, materialize messages with rebuild: true, or run "
    "`mail-assets backfill --rebuild --only messages`"
)


def test_upkeep_finds_a_fault_that_a_later_run_does_not_show(world: DagsterWorld) -> None:
    sql("update mbox_archives set found = 61 where month = '2024-03'")(world)
    assert world.month(APRIL, select=["messages"]).success, "April is checked alone, and green"
    result = world.defs.resolve_job_def("upkeep").execute_in_process(
        instance=world.instance, op_selection=["check_all_months"], raise_on_error=False
    )
    assert "accounted_for" in failure(result).description
    found = {name_of(key): check for key, check in world.checks().items()}
    assert found.pop(MONTHS_MADE).passed, "of the run of April: no check of all months"
    assert {*found} == {x.check for x in FAULTS}
    assert {name for name, check in found.items() if not check.passed} == {"accounted_for"}
    reason = "61 messages were found and 60 are accounted for"
    assert found["accounted_for"].description == f"failed: {HARBOR} {MARCH} ({reason}){REMEDY}"
    assert {check.metadata["checked_months"].value for check in found.values()} == {2}


@pytest.mark.parametrize("kind", COMPRESSIONS)
def test_archive_of_blank_lines_fails_an_empty_one_not(world: DagsterWorld, kind: str) -> None:
    for month, content in ((JUNE, b""), (MAY, b"\n \n")):
        path = world.folder() / f"{HARBOR}.{month}.mbox{kind}"
        path.write_bytes(COMPRESSIONS[kind](content))
    assert world.month(JUNE, select=["mbox_archives", "messages"]).success
    result = world.month(MAY, select=["mbox_archives", "messages"])
    [failed] = [one for one in result.get_asset_check_evaluations() if not one.passed]
    reason = "no message was found in the 3 bytes of the archive"
    assert failed.description == f"failed: {HARBOR} {MAY} ({reason}){REMEDY}"
    [told] = read_failures(world.instance, result.run_id)
    assert told.subject == f"{HARBOR} {MAY}"
    assert told.reason.startswith(f"check accounted_for failed: {reason}; ")


def test_check_reads_all_months_at_once(
    world: DagsterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def count(file: str, name: str) -> LiteralString:
        asked.append(name)
        return statement(file, name)

    monkeypatch.setattr("mail_assets.tables.checks.statement", count)
    for check in (accounted_for, few_quarantined, few_undated, few_unthreaded):
        assert world.check(check).passed
    for check in (spans_point_into_bodies, tokens_in_range):
        assert world.check(check).passed
    of_messages = ["message_counts", "message_counts", "undated", "unthreaded"]
    assert asked == [*of_messages, "wrong_spans", "tokens"]


def test_many_failed_months_are_named_up_to_a_dozen() -> None:
    months = [ListMonth("dev", month) for month in months_between("2011-01", "2024-12")]
    checked = {month: CheckedMonth(False, {"rows": 1}) for month in months}
    result = month_result(checked, dg.AssetCheckSeverity.WARN)
    assert (result.description or "").startswith("failed: dev 2011-01, dev 2011-02, ")
    assert (result.description or "").endswith("dev 2011-12 and 156 more")
    assert result.metadata["failed_months"].value == len(months) == 168
    assert len(result.metadata["months"].records) == 120  # type: ignore[attr-defined]


def test_check_passes_when_nothing_is_materialized() -> None:
    result = month_result({}, dg.AssetCheckSeverity.WARN)
    assert result.passed
    assert result.metadata["checked_months"].value == 0


def test_thread_checks_cover_changed_months_only(world: DagsterWorld) -> None:
    sql("delete from threads where message_id = '2024-03.7@example.org'")(world)
    for month, passed in [(APRIL, True), (MARCH, False)]:
        result = world.month(month, select=["messages", "threads"])
        found = {check.check_name: check for check in result.get_asset_check_evaluations()}
        assert found["few_unthreaded"].passed == passed
        assert found["few_unthreaded"].metadata["checked_months"].value == 1
    whole = world.check(few_unthreaded)
    assert whole.metadata["checked_months"].value == 2
    assert not whole.passed


def test_check_in_a_run_looks_at_the_months_of_the_run(world: DagsterWorld) -> None:
    sql("delete from messages where message_id = '2024-03.7@example.org'")(world)
    for month, passed in [(APRIL, True), (MARCH, False)]:
        result = world.month(month, select=["messages"])
        [found] = [
            check
            for check in result.get_asset_check_evaluations()
            if check.check_name == "accounted_for"
        ]
        assert found.passed == passed
        assert result.success == passed


@pytest.mark.parametrize(
    "statement",
    [
        f"insert into thread_aliases values ('{FORGOTTEN}', '2024-04.0@example.org', true)",
        f"update threads set root_id = '{FORGOTTEN}' where message_id like '2024-04%'",
        "insert into vectors select 'lance:/gone mail-x', key_prefix || '#0', list, month, '', true"
        " from removed_messages",
        "insert into words select 'lance:/gone words-1', key_prefix, list, month, '', true"
        " from removed_messages",
    ],
)
def test_forgotten_mail_is_looked_for_in_every_index(world: DagsterWorld, statement: str) -> None:
    forgotten_and(statement)(world)
    assert not world.check(forgotten_stay_forgotten).passed


def test_forgetting_fails_no_check(world: DagsterWorld) -> None:
    forget(world)
    for check in OF_THE_CHAIN:
        assert world.check(check).passed, check


def test_every_check_has_a_fault() -> None:
    names = {name_of(key) for check in OF_THE_CHAIN for key in check.check_keys}
    assert names == {fault.check for fault in FAULTS}

"""Each fault of a home gives a finding, whose remedy repairs it."""

import datetime as dt
import shutil
import subprocess
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import psycopg
import pytest

from mail_assets.defs.doctor import psql_command
from mail_assets.encoding.models import compute_fingerprint
from mail_assets.forgetting import clean
from mail_assets.forgetting.forget import ForgetRequest, cut_archives, forget_messages
from mail_assets.indexes.encoder_probe import probe_encoder
from mail_assets.indexes.mail_index import MailBucket
from mail_assets.indexes.names import index_name
from mail_assets.indexes.vectors import MailVectors, index_spec
from mail_assets.indexes.words import open_words_bucket
from mail_assets.month import ListMonth
from mail_assets.operations import examine
from mail_assets.operations.examine import (
    Finding,
    examine_defaults,
    examine_disks,
    examine_empty_lists,
    examine_encoder,
    examine_extensions,
    examine_forgotten,
    examine_lists,
    examine_months,
    examine_months_outside,
    examine_server,
    examine_silent_lists,
    examine_vectors,
    examine_words,
)
from mail_assets.steps.fill_index import write_vectors
from mail_assets.steps.load_messages import load_messages
from mail_assets.tables.indexes import NewIndex, make_first_live, record_index, switch_live
from mail_assets.tables.removals import withdraw_removals
from mail_assets.vectors.index import VectorError
from mail_assets.vectors.open import open_bucket
from mail_assets.words.index import WordsError
from mail_assets.workspace import ListDefaults
from mail_assets_tests.world import (
    APRIL,
    DIGESTS,
    HARBOR,
    MARCH,
    PIER,
    PROFILE,
    Hashing,
    World,
    mail,
)

CONFIGURED = index_name(PROFILE, "int8")


@pytest.fixture
def connection(world: World) -> Iterator[psycopg.Connection]:
    with world.connect() as connection:
        yield connection


def remedies(found: Iterator[Finding]) -> list[str]:
    return [one.remedy for one in found]


def behind(connection: psycopg.Connection, index_name: str = "") -> list[Finding]:
    return [*examine_months(connection, lambda month: True, index_name)]


def test_list_that_is_no_longer_configured_is_named(
    world: World, connection: psycopg.Connection
) -> None:
    lists_file = world.home / "lists.toml"
    for month in (MARCH, APRIL):
        world.load(mail(f"a{month}"), month=month, last="vectors")
    assert not [*examine_lists(connection, [HARBOR, PIER], lists_file)]
    [left] = examine_lists(connection, [PIER], lists_file)
    assert left.where == f"list {HARBOR}: 2 messages in 2 months"
    back = f"or put [{HARBOR}] back into {lists_file}"
    assert left.remedy == f"mail-assets list remove {HARBOR}  # {back}"


def days(*numbers: int) -> list[bytes]:
    return [mail(f"d{day}", date=f"{day} Mar 2024 10:00:00 +0000") for day in numbers]


@pytest.mark.parametrize(
    ("written", "today", "silent"),
    [
        (range(1, 16), "2024-03-18", False),
        (range(1, 16), "2024-03-19", True),
        (range(1, 29, 3), "2024-04-05", False),
        (range(1, 29, 3), "2024-04-08", True),
        (range(1, 10), "2026-01-01", False),  # too few days to have a usual gap
        ([*range(1, 15), 30], "2024-03-18", True),  # a date in the future is no mail
    ],
)
def test_list_that_fell_silent_is_named(
    world: World, connection: psycopg.Connection, written: Sequence[int], today: str, silent: bool
) -> None:
    world.load(*days(*written))
    now = dt.datetime.fromisoformat(f"{today}T12:00:00+00:00")
    found = [*examine_silent_lists(connection, [HARBOR, PIER], now)]
    assert [one.where.partition(":")[0] for one in found] == [f"list {HARBOR}"] * silent


@pytest.mark.parametrize(
    ("first", "last", "outside"),
    [("2024-01", None, []), (APRIL, None, [MARCH]), ("2024-01", MARCH, [APRIL])],
)
def test_months_outside_of_the_bounds_are_named(
    world: World, connection: psycopg.Connection, first: str, last: str | None, outside: list[str]
) -> None:
    for month in (MARCH, APRIL):
        world.load(mail(f"a{month}"), month=month)
    found = [*examine_months_outside(connection, [HARBOR, PIER], first, last)]
    assert [one.where for one in found] == [f"{HARBOR} {month}" for month in outside]
    assert all("nothing is lost" in one.remedy for one in found)


def test_missing_extensions_are_named(connection: psycopg.Connection) -> None:
    connection.execute("drop extension if exists vector cascade")
    assert not [*examine_extensions(connection, "psql", needs_vector=False)]
    connection.execute("drop extension pg_trgm cascade")
    names = [one.problem for one in examine_extensions(connection, "psql", needs_vector=True)]
    assert names == ["the extension pg_trgm is missing", "the extension vector is missing"]


def test_list_without_a_month_is_named(world: World, connection: psycopg.Connection) -> None:
    world.load(mail("a"), last="vectors")
    [empty] = examine_empty_lists(connection, [HARBOR, PIER])
    assert empty == Finding(
        "no month is stored", f"list {PIER}", f"mail-assets backfill --list {PIER}"
    )


def test_list_without_messages_is_not_named(world: World, connection: psycopg.Connection) -> None:
    world.load(last="vectors")
    assert not [*examine_lists(connection, [PIER], world.home / "lists.toml")]


@pytest.mark.parametrize(
    "now", [ListDefaults("german"), ListDefaults("english", "koi8-r")], ids=str
)
def test_months_with_other_list_defaults_are_named(
    world: World, connection: psycopg.Connection, now: ListDefaults
) -> None:
    for month in (MARCH, APRIL):
        world.load(mail(f"a{month}"), month=month, last="vectors")
    world.load(list_name=PIER, last="vectors")
    before = {HARBOR: ListDefaults("english"), PIER: ListDefaults("english")}
    assert not [*examine_defaults(connection, before)]
    changed = dict.fromkeys(before, now)
    [found] = examine_defaults(connection, changed)
    assert found.where == f"{HARBOR} {MARCH} to {APRIL} (2 months)"
    assert found.remedy == f"mail-assets backfill --list {HARBOR} --from {MARCH} --to {APRIL}"
    with world.workspace() as workspace:
        for month in (MARCH, APRIL):
            load_messages(workspace, ListMonth(HARBOR, month), now)
    assert not [*examine_defaults(connection, changed)]


def test_months_behind_are_named_with_the_first_asset_to_make(
    world: World, connection: psycopg.Connection
) -> None:
    for month in (MARCH, APRIL):
        world.load(mail(f"a{month}"), month=month, last="vectors")
    world.archive(MARCH, mail("x"), list_name=PIER)
    assert not [*behind(connection)]
    world.archives(MARCH, PIER)
    [never] = behind(connection)
    assert (never.problem, never.where) == (
        "not made yet, or made from other archives: messages",
        f"{PIER} {MARCH}",
    )
    assert never.remedy == f"mail-assets backfill --list {PIER} --from {MARCH} --to {MARCH}"
    world.chain(MARCH, PIER)
    for asset in ("words", "chunks", "embeddings", "vectors"):
        connection.execute("delete from partitions where asset = %s and list = %s", (asset, HARBOR))
        [found] = behind(connection)
        assert found.problem.endswith(f": {asset}")
        assert found.where == f"{HARBOR} {MARCH} to {APRIL} (2 months)"
        for month in (MARCH, APRIL):
            world.chain(month)
        assert not [*behind(connection)]
    world.archive(MARCH, mail("b"), mail(f"a{MARCH}"), at=60)
    world.archives(MARCH)
    [changed] = behind(connection)
    assert changed.problem.endswith(": messages")
    world.chain(MARCH)
    assert not [*behind(connection)]


def test_forgetting_changes_no_month_behind(world: World, connection: psycopg.Connection) -> None:
    for month in (MARCH, APRIL):
        world.load(mail(f"a{month}"), mail(f"b{month}"), month=month, last="vectors")
    request = ForgetRequest([f"a{MARCH}@example.org"], (), "asked", "test")

    def forget() -> None:
        with world.workspace() as workspace:
            forget_messages(workspace, request, lambda name: world.index)

    forget()
    assert not [*behind(connection)]
    assert world.messages(MARCH).counts["stored"] == 1
    assert world.messages(MARCH).counts["written"] == 0
    digest = DIGESTS.of_message(f"a{MARCH}@example.org")
    withdraw_removals(connection, [digest])
    assert [one.where for one in behind(connection)] == [f"{HARBOR} {MARCH}"]
    world.chain(MARCH)
    assert not [*behind(connection)]
    for asset in ("words", "chunks", "embeddings", "vectors"):
        connection.execute("update partitions set inputs = 'old' where asset = %s", (asset,))
        forget()
        assert {one.problem.rpartition(" ")[2] for one in behind(connection)} == {asset}
        withdraw_removals(connection, [digest])
        for month in (MARCH, APRIL):
            world.chain(month)


def test_months_that_no_run_can_make_are_not_named(
    world: World, connection: psycopg.Connection
) -> None:
    for name in (HARBOR, PIER):
        for month in (MARCH, APRIL):
            world.archive(month, mail(f"a{name}"), list_name=name)
            world.archives(month, name)
    [found] = examine_months(connection, lambda one: one == ListMonth(PIER, APRIL), "")
    assert found.where == f"{PIER} {APRIL}"


def test_month_is_behind_when_only_another_index_has_it(
    world: World, connection: psycopg.Connection
) -> None:
    world.archive(MARCH, mail("a"))
    world.archive(APRIL, mail("b"))
    for month in (MARCH, APRIL):
        world.chain(month)
    live = world.mail_index.manifest.index_name

    def fill_other(month: str) -> None:
        index = open_bucket(world.bucket).index(index_spec(PROFILE, "fp32"))
        other = MailVectors(index, world.bucket, PROFILE, "fp32", world.encoder.fingerprint)
        with world.workspace() as workspace:
            write_vectors(workspace, ListMonth(HARBOR, month), other)

    for month in (MARCH, APRIL):
        fill_other(month)
    assert not behind(connection, live), "it has them all"
    world.load(mail("b"), mail("new"), month=APRIL, at=1, last="embeddings")
    fill_other(APRIL)
    assert not behind(connection)
    [found] = behind(connection, live)
    assert found.problem.endswith(": vectors")
    assert found.where == f"{HARBOR} {APRIL}"
    world.chain(APRIL)
    assert not behind(connection, live)


def test_forgotten_mail_out_of_reach_is_named_until_cleaned(
    world: World, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.load(mail("a"), mail("secret"), last="vectors")
    request = ForgetRequest(["secret@example.org"], (), "asked", "test", cut=True)

    def forget() -> None:
        with world.workspace() as workspace:
            report = forget_messages(workspace, request, lambda name: world.index)
            if not report.failed:
                cut_archives(workspace, report.uncut, {HARBOR: ListDefaults("english")})

    def vectors_down(*_: object) -> None:
        raise VectorError("is down")

    def words_down(*_: object) -> None:
        raise WordsError("is down")

    with monkeypatch.context() as patch:
        patch.setattr(clean, "_delete_vectors", vectors_down)
        patch.setattr(clean, "open_mail_words", words_down)
        forget()
    found = {one.problem: one.where for one in examine_forgotten(connection)}
    assert found == {
        "1 vectors of forgotten mail are left": world.mail_index.manifest.index_name,
        "1 documents of forgotten mail are left": world.mail_words.manifest.index_name,
        "forgotten mail is not cut out of its archive yet": f"{HARBOR} {MARCH}",
    }
    forget()
    assert not [*examine_forgotten(connection)]


def test_live_index_that_is_missing_is_named(world: World, connection: psycopg.Connection) -> None:
    bucket, words = MailBucket(open_bucket(world.bucket), world.bucket), world.mail_words

    def look() -> list[str]:
        return remedies(examine_vectors(connection, bucket, CONFIGURED)) + remedies(
            examine_words(connection, open_words_bucket(world.words_url), words)
        )

    assert look() == [], "nothing was ever filled"
    world.index.ensure()
    words.index.ensure()
    record = NewIndex(CONFIGURED, PROFILE, "int8", compute_fingerprint(PROFILE, "int8"))
    record_index(connection, world.bucket, record)
    make_first_live(connection, world.bucket, CONFIGURED)
    record_index(connection, world.words_url, words.record)
    make_first_live(connection, world.words_url, words.name)
    assert look() == []
    for folder in ("vectors", "words"):
        shutil.move(world.home / folder, world.home / "elsewhere")
        assert look() == ["mail-assets backfill"]
        # to connect makes an empty folder
        shutil.rmtree(world.home / folder, ignore_errors=True)
        shutil.move(world.home / "elsewhere", world.home / folder)
    other = NewIndex(index_name(PROFILE, "fp32"), PROFILE, "fp32", "f")
    record_index(connection, world.bucket, other)
    switch_live(connection, world.bucket, other.name, False, {})
    assert look() == [f"MAIL_ENCODER={PROFILE} MAIL_PRECISION=fp32 mail-assets backfill"]
    (world.home / "vectors" / f"{other.name}.lance").mkdir()
    [contradiction] = look()
    assert contradiction.endswith(f"index promote {CONFIGURED}")
    record_index(connection, world.words_url, words.record._replace(name="words-0"))
    switch_live(connection, world.words_url, "words-0", False, {})
    assert look()[1:] == ["mail-assets backfill"]


def run(remedy: str, dsn: str) -> None:
    subprocess.run(
        ["bash", "-c", remedy], env={"MAIL_PG_DSN": dsn}, check=True, capture_output=True
    )


def test_remedies_mend_missing_statistics_and_idle_locks(
    world: World, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    psql = psql_command(world.settings())
    connection.execute("alter table removals set (autovacuum_enabled = off)")
    assert not [*examine_server(connection, psql)]
    connection.execute(
        "insert into removals select decode(md5(n::text), 'hex'), 'message', repeat('x', 500), 'jo'"
        " from generate_series(1, 4000) n"
    )
    [statistics] = examine_server(connection, psql)
    assert (statistics.problem, statistics.where) == ("the planner has no statistics", "removals")
    run(statistics.remedy, world.dsn)
    assert not [*examine_server(connection, psql)]

    with (
        psycopg.connect(world.dsn, autocommit=True, application_name="mail_assets/words") as left,
        psycopg.connect(world.dsn, autocommit=True, application_name="a job of others") as other,
    ):
        for number, session in enumerate((left, other)):
            session.execute("select pg_advisory_lock(%s)", [number])
        assert not [*examine_server(connection, psql)], "an hour may be work"
        monkeypatch.setattr(examine, "IDLE", 0.0)
        [lock] = examine_server(connection, psql)
        assert lock.where.endswith(" mail_assets/words")
        run(lock.remedy, world.dsn)
        assert not [*examine_server(connection, psql)]
        with pytest.raises(psycopg.OperationalError):
            left.execute("select 1")


def test_encoder_of_other_vectors_is_named(world: World, connection: psycopg.Connection) -> None:
    probe_encoder(connection, world.encoder, print)
    assert not [*examine_encoder(connection, world.encoder)]

    class Drifted(Hashing):
        """Makes other vectors of the same texts."""

        def encode_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
            return super().encode_documents([f"{text}!" for text in texts])

    [found] = examine_encoder(connection, Drifted(world.home))
    assert found.problem == "the encoder makes other vectors here"


def test_nearly_full_disk_is_named_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [*examine_disks([world.home / "none"])]
    monkeypatch.setattr(shutil, "disk_usage", lambda path: (100 << 30, 99 << 30, 1 << 30))
    [full] = examine_disks([world.home, world.home / "lists"])
    assert full.where.startswith(f"{world.home}: 1.1 of 107.4 GB free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: (100 << 30, 94 << 30, 6 << 30))
    assert not [*examine_disks([world.home])]

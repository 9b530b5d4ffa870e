"""A month is unchanged exactly if its steps would write nothing."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest

from mail_assets.encoding.models import LOCAL_MODELS
from mail_assets.forgetting.forget import ForgetRequest
from mail_assets.month import ListMonth
from mail_assets.steps.fetch_archive import FetchOptions
from mail_assets.steps.unchanged_months import Chain, find_unchanged
from mail_assets.store.embeddings import file_key
from mail_assets.tables.health import find_behind
from mail_assets.tables.mbox_archives import read_archive
from mail_assets.tables.partitions import (
    MonthCheck,
    Partition,
    find_unchecked,
    read_state,
    record_checked,
)
from mail_assets.tables.removals import withdraw_removals
from mail_assets.vectors.lance import LanceIndex
from mail_assets.workspace import ListDefaults
from mail_assets_tests.vectors.fake_s3vectors import FakeS3Vectors
from mail_assets_tests.world import APRIL, DIGESTS, HARBOR, MARCH, PIER, PROFILE, World, mail

CHAIN = ("mbox_archives", "messages", "words", "chunks", "embeddings", "vectors")
MONTHS = [ListMonth(HARBOR, MARCH), ListMonth(HARBOR, APRIL)]
FIRST = MONTHS[0]
WHERE = f"where (list, month) = ('{HARBOR}', '{MARCH}')"


@pytest.fixture
def filled(world: World) -> World:
    """A finished month, and one without archive."""
    world.archive(
        MARCH, mail("a", sender="eve@example.net"), mail("b", references="<a@example.org>")
    )
    run_chain(world)
    return world


def run_chain(world: World, months: list[ListMonth] = MONTHS) -> None:
    for month in months:
        world.chain(month.month, month.list_name)


def chain(world: World) -> Chain:
    return Chain(
        {name: FetchOptions(world.dialect) for name in (HARBOR, PIER)},
        dict.fromkeys((HARBOR, PIER), ListDefaults("english")),
        LOCAL_MODELS[PROFILE].sizes,
        world.mail_index,
        world.mail_words,
        {},
    )


def unchanged(world: World, made_by: Chain | None = None) -> set[ListMonth]:
    with world.workspace() as workspace:
        return {*find_unchanged(workspace, made_by or chain(world), MONTHS, CHAIN)}


def sql(statement: str) -> Callable[[World], None]:
    def change(world: World) -> None:
        with world.connect() as connection:
            connection.execute(statement.encode())

    return change


def archive_lost(world: World) -> None:
    with world.connect() as connection:
        archive = read_archive(connection, FIRST)
    assert archive
    assert archive.object_key
    world.store.delete(archive.object_key)


def embeddings_lost(world: World) -> None:
    world.store.delete(file_key(FIRST, world.encoder.fingerprint))


def vector_lost(world: World) -> None:
    [(key,), *_] = world.rows("vectors", "key", f"(list, month) = ('{HARBOR}', '{MARCH}')")
    world.index.delete([key])


def document_lost(world: World) -> None:
    [(key,), *_] = world.rows("words", "key", f"(list, month) = ('{HARBOR}', '{MARCH}')")
    world.mail_words.index.delete([key])


def forget(world: World) -> None:
    world.forget(ForgetRequest(["a@example.org"], [], "asked to", "the postmaster"))


def take_back(world: World) -> None:
    forget(world)
    run_chain(world)
    assert unchanged(world) == {*MONTHS}
    with world.connect() as connection:
        withdraw_removals(connection, {DIGESTS.of_message("a@example.org")})


def new_messages(world: World) -> None:
    stored = len(world.rows("messages"))
    more = [mail(f"more{number}") for number in range(stored)]
    world.archive(MARCH, mail("a", sender="eve@example.net"), *more, at=stored)
    world.archives(MARCH)


def killed_before(step: str) -> Callable[[World], None]:
    """Run the steps on a new message, up to a step that is killed."""

    def change(world: World) -> None:
        new_messages(world)
        world.chain(MARCH, last=step)

    return change


class Change(NamedTuple):
    what: str
    make: Callable[[World], None]


CHANGES = [
    Change("the store has lost the archive", archive_lost),
    Change("the archive was fetched again", new_messages),
    *(
        Change(f"killed after {step}", killed_before(step))
        for step in ("messages", "words", "chunks", "embeddings")
    ),
    Change("the store has lost the embeddings", embeddings_lost),
    Change("a vector is lost", vector_lost),
    Change("a document is lost", document_lost),
    Change("a message was forgotten", forget),
    Change("a message was taken back", take_back),
    Change("a vector is not written", sql(f"update vectors set written = false {WHERE}")),
    Change("a document is not written", sql(f"update words set written = false {WHERE}")),
    Change("the manifest of vectors is empty", sql(f"delete from vectors {WHERE}")),
    Change("the manifest of words is empty", sql(f"delete from words {WHERE}")),
    *(Change(f"nothing is known of {asset}",
             sql(f"delete from partitions {WHERE} and asset = '{asset}'")) for asset in CHAIN),
    Change("nothing is known of the archive", sql(f"delete from mbox_archives {WHERE}")),
]  # fmt: skip


def test_month_is_unchanged_exactly_when_steps_write_nothing(filled: World) -> None:
    """All changes use one world: after each, a run brings it up to date, as a backfill would."""
    assert unchanged(filled) == {*MONTHS}
    for what, make in CHANGES:
        make(filled)
        left = unchanged(filled)
        assert FIRST not in left, what
        assert left >= {*MONTHS} - {FIRST}, what
        before = filled.writes()
        run_chain(filled, sorted(left)[:1])
        assert filled.writes() == before, what
        run_chain(filled, [FIRST])
        assert unchanged(filled) == {*MONTHS}, f"{what}: what was done is not done again"


def test_new_step_version_changes_all_months(
    filled: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in (
        "fetch_archive.VERSION",
        "load_messages.MESSAGES_VERSION",
        "cut_chunks.CHUNKER_VERSION",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"mail_assets.steps.{version}", "another")
            assert unchanged(filled) == set(), version


def test_another_setting_changes_every_month_with_mail(filled: World) -> None:
    made = chain(filled)
    settings = {
        "dialect": made._replace(options=dict.fromkeys(made.options, FetchOptions("mboxrd"))),
        "language": made._replace(defaults=dict.fromkeys(made.defaults, ListDefaults("simple"))),
        "charset": made._replace(
            defaults=dict.fromkeys(made.defaults, ListDefaults("english", "koi8-r"))
        ),
        "chunk sizes": made._replace(sizes=made.sizes._replace(target=77)),
        "encoder": made._replace(vectors=replace(made.vectors, fingerprint="another")),
        "bucket": made._replace(vectors=replace(made.vectors, url="lance:/elsewhere")),
        "version of words": made._replace(words=replace(made.words, version="words-0")),
    }
    for what, setting in settings.items():
        assert FIRST not in unchanged(filled, setting), what


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a bucket of a service that cannot list keys by filter."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "an-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
    with FakeS3Vectors("aws") as server:
        yield f"s3vectors://mail?region=us-east-1&endpoint={server.url}"


@pytest.mark.parametrize("place", ["vectors", "vectors at a service", "words"])
def test_lost_or_retired_index_changes_all_months(filled: World, service: str, place: str) -> None:
    if place == "vectors at a service":
        filled.bucket = service
        run_chain(filled)
        assert unchanged(filled) == {*MONTHS}
    index = filled.mail_words.index if place == "words" else filled.index
    index.drop()
    assert unchanged(filled) == {ListMonth(HARBOR, APRIL)}
    run_chain(filled, [FIRST])
    assert unchanged(filled) == {*MONTHS}
    url = filled.words_url if place == "words" else filled.bucket
    with filled.connect() as connection:
        connection.execute("delete from live_indexes where bucket = %s", [url])
    assert unchanged(filled) == {ListMonth(HARBOR, APRIL)}


def test_lost_index_changes_months_until_each_is_filled(filled: World, service: str) -> None:
    second = ListMonth(PIER, MARCH)
    filled.archive(MARCH, mail("c"), list_name=PIER)
    filled.bucket = service
    run_chain(filled, [*MONTHS, second])

    def left() -> dict[ListMonth, str]:
        with filled.connect() as connection:
            return find_behind(connection)

    assert left() == {}
    filled.index.drop()
    filled.vectors(MARCH, PIER)
    assert left() == {FIRST: "vectors"}
    assert unchanged(filled) == {ListMonth(HARBOR, APRIL)}
    run_chain(filled, [FIRST])
    assert left() == {}
    assert filled.index.count() == 3


@pytest.mark.parametrize("stops", [True, False], ids=["blocking", "warning"])
def test_month_without_its_checks_is_not_unchanged(filled: World, stops: bool) -> None:
    check = MonthCheck("chunks", "spans", "chunks")
    checks = {("chunks", "spans"): stops, ("threads", "few"): True}
    made_by = chain(filled)._replace(checks=checks)
    assert unchanged(filled, made_by) == set()
    with filled.connect() as connection:
        due = find_unchecked(connection, check)
        assert {*due} == {*MONTHS}
        record_checked(connection, check, due, dict.fromkeys(due, False))
        assert {*find_unchecked(connection, check)} == {*MONTHS}
        assert unchanged(filled, made_by) == (set() if stops else {*MONTHS})
        record_checked(connection, check, due, dict.fromkeys(due, True))
        assert find_unchecked(connection, check) == {}
        assert unchanged(filled, made_by) == {*MONTHS}
        new_messages(filled)
        run_chain(filled)
        assert {*find_unchecked(connection, check)} == {FIRST}
    assert unchanged(filled, made_by) == {*MONTHS} - {FIRST}


def test_month_that_was_written_again_is_checked_again(filled: World) -> None:
    losses = {"vectors": vector_lost, "words": document_lost, "embeddings": embeddings_lost}
    for asset, lose in losses.items():
        check = MonthCheck(asset, "there", asset)
        with filled.connect() as connection:
            due = find_unchecked(connection, check)
            record_checked(connection, check, due, dict.fromkeys(due, True))
            before = read_state(connection, Partition(asset, FIRST))
            lose(filled)
            run_chain(filled, [FIRST])
            after = read_state(connection, Partition(asset, FIRST))
            assert {*find_unchecked(connection, check)} == {FIRST}
        assert before
        assert after
        assert (before.inputs, before.digest) == (after.inputs, after.digest)


def test_all_months_take_as_many_statements_as_one(
    filled: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans: list[object] = []
    monkeypatch.setattr(
        LanceIndex, "_find_values", lambda *_: pytest.fail("no month is looked up by itself")
    )
    counted = LanceIndex.count_groups

    def count(index: LanceIndex, fields: Sequence[str]) -> Counter[tuple[object, ...]]:
        scans.append(fields)
        return counted(index, fields)

    monkeypatch.setattr(LanceIndex, "count_groups", count)
    assert unchanged(filled) == {*MONTHS}
    assert len(scans) == 1

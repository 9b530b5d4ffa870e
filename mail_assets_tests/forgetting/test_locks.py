"""Forgetting while months are made waits for the right runs, and blocks few."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from mail_assets.forgetting.forget import ForgetReport, ForgetRequest, forget_messages
from mail_assets.mail.threads import ThreadMessage, ThreadNode, build_trees
from mail_assets.month import ListMonth
from mail_assets.steps import build_threads as build_step
from mail_assets.steps.fill_index import make_documents
from mail_assets.store.embeddings import file_key, read_embeddings, write_embeddings
from mail_assets.tables.partitions import Partition, locked
from mail_assets_tests.kept_worlds import kept_world
from mail_assets_tests.waits import LONG, wait_until
from mail_assets_tests.world import APRIL, HARBOR, MARCH, MAY, World, mail

HERE = ListMonth(HARBOR, MARCH)
SECRET = ForgetRequest(["secret@example.org"], [], "asked to", "the postmaster")


def fill_world(made: World) -> None:
    made.archive(MARCH, mail("a"), mail("secret"))
    made.archive(APRIL, mail("b"))
    made.fill(MARCH, APRIL)


world = kept_world(fill_world)


class Forgetting:
    """A forgetting in a thread; `waits` is set when it reports that it waits."""

    def __init__(self, world: World) -> None:
        self.said: list[str] = []
        self.waits = threading.Event()
        self.report: ForgetReport | None = None
        self._world = world
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _log(self, line: str) -> None:
        self.said.append(line)
        if "waiting" in line:
            self.waits.set()

    def _run(self) -> None:
        with self._world.workspace() as workspace:
            logged = replace(workspace, log=self._log)
            self.report = forget_messages(logged, SECRET, self._world.open_index)

    def wait(self) -> ForgetReport:
        self._thread.join(LONG)
        assert self.report
        return self.report


@contextmanager
def run_of(world: World, asset: str, month: ListMonth = HERE) -> Iterator[None]:
    """Hold the lock that a run of a partition holds, on a connection of its own."""
    with world.connect() as connection, locked(connection, Partition(asset, month)):
        yield


def test_month_that_is_being_encoded_blocks_no_load(world: World) -> None:
    key = file_key(HERE, world.encoder.fingerprint)
    with run_of(world, "embeddings"):
        forgetting = Forgetting(world)
        assert forgetting.waits.wait(LONG)
        # its rows are gone, and other months and this one are loaded meanwhile
        assert world.rows("messages", "message_id", f"month = '{MARCH}'") == [("a@example.org",)]
        world.load(mail("c"), month=MAY, last="vectors")
        world.load(mail("a"), mail("secret"), mail("new"), at=1, last="chunks")
        held = read_embeddings(world.store, key)
        assert len(held) == 2
    report = forgetting.wait()
    assert forgetting.said[-1] == f"{HERE}: waiting for the run that encodes it"
    assert (report.files, report.vectors) == (1, 1)
    assert len(read_embeddings(world.store, key)) == 1


def test_vectors_written_after_forgetting_are_cleaned(world: World) -> None:
    key = file_key(HERE, world.encoder.fingerprint)
    before = read_embeddings(world.store, key)
    with run_of(world, "vectors"), run_of(world, "embeddings"):
        forgetting = Forgetting(world)
        assert forgetting.waits.wait(LONG)
        write_embeddings(world.store, key, before, world.encoder.fingerprint)
    assert forgetting.wait().vectors == 1
    assert len(read_embeddings(world.store, key)) == 1
    assert {*world.index.keys()} == {k for (k,) in world.rows("chunks", "key")}


def test_words_written_after_forgetting_are_erased(world: World) -> None:
    keys = [key for (key,) in world.rows("words", "key")]
    with world.connect() as connection:
        documents = {one.message_id: one for one in make_documents(connection, HERE, keys)}
    with run_of(world, "words"):
        forgetting = Forgetting(world)
        assert forgetting.waits.wait(LONG)
        assert forgetting.said[-1] == f"{HERE}: waiting for the run that writes its words"
        world.mail_words.index.put([documents["secret@example.org"]])
    assert forgetting.wait().documents == 1
    assert {*world.mail_words.index.keys()} == {k for (k,) in world.rows("words", "key")}
    assert len(world.rows("words")) == len(world.rows("messages")) == 2


def test_copy_that_a_load_brings_meanwhile_is_seen(world: World) -> None:
    """The months whose locks are held are those found before: another may come with a load."""
    with run_of(world, "chunks"):
        forgetting = Forgetting(world)
        assert forgetting.waits.wait(LONG)
        world.load(mail("b"), mail("secret"), at=1, month=APRIL, last="vectors")
    assert {copy.month.month for copy in forgetting.wait().copies} == {MARCH, APRIL}
    assert not world.rows("messages", where="message_id = 'secret@example.org'")
    assert not world.rows("chunks", where="message_id = 'secret@example.org'")


def test_forgetting_waits_for_a_load_and_names_it(world: World) -> None:
    from mail_assets.tables.removals import lock_for_load

    with world.connect() as connection, connection.transaction():
        lock_for_load(connection)
        forgetting = Forgetting(world)
        assert forgetting.waits.wait(LONG)
        assert forgetting.said == ["waiting for the loads of months that have begun"]
    assert len(forgetting.wait().copies) == 1


@pytest.mark.parametrize("first", ["words", "chunks", "embeddings", "vectors"])
def test_two_forgettings_and_a_run_end_in_any_order(world: World, first: str) -> None:
    with run_of(world, first):
        two = [Forgetting(world), Forgetting(world)]
        for one in two:
            assert one.waits.wait(LONG)
    reports = [one.wait() for one in two]
    assert sum(len(report.copies) for report in reports) == 1
    assert {*world.index.keys()} == {k for (k,) in world.rows("chunks", "key")}


def test_forgetting_and_threads_both_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = mail("d", references="<secret@example.org>")
    world.load(answer, month=MAY)
    world.threads()
    assert world.summaries().counts["made"] == 1
    world.load(answer, mail("c", references="<secret@example.org>"), month=MAY, at=1)
    forgettings: list[Forgetting] = []

    def build(messages: Sequence[ThreadMessage]) -> list[ThreadNode]:
        if not forgettings:
            forgettings.append(Forgetting(world))
            wait_until(lambda: waits_for_threads(world))
        return build_trees(messages)

    monkeypatch.setattr(build_step, "build_trees", build)
    assert world.threads().counts["threads"] == 3
    assert len(forgettings[0].wait().copies) == 1
    assert not world.rows("messages", where="message_id = 'secret@example.org'")
    assert not world.rows("threads", where="message_id = 'secret@example.org'")


def waits_for_threads(world: World) -> bool:
    waiting = "wait_event = 'advisory' and query like '%''threads''%'"
    return bool(world.rows("pg_stat_activity", "pid", waiting))

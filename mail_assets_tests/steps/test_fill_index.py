"""Filling a month of either index: keys in it = keys in the manifest = rows, always."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from mail_assets.indexes import month as index_month
from mail_assets.indexes.vectors import MailVectors
from mail_assets.indexes.words import MailWords
from mail_assets.month import ListMonth
from mail_assets.steps import fill_index
from mail_assets.steps.fill_index import make_documents
from mail_assets.tables.health import find_behind
from mail_assets.tables.indexes import live_index
from mail_assets.vectors.index import Vector
from mail_assets.vectors.lance import LanceIndex
from mail_assets.words.lance import LanceWordIndex
from mail_assets.workspace import Outcome
from mail_assets_tests.world import APRIL, HARBOR, LATER, MARCH, Killed, World, mail, read_documents

BACKENDS = {"vectors": LanceIndex, "words": LanceWordIndex}


@dataclass
class Filled:
    """One of the two indexes of a world."""

    world: World
    kind: str

    @property
    def mail_index(self) -> MailVectors | MailWords:
        return self.world.mail_index if self.kind == "vectors" else self.world.mail_words

    @property
    def index(self) -> Any:
        return self.mail_index.index

    def load(self, *mails: bytes, at: int = 0, month: str = MARCH, list_name: str = HARBOR) -> None:
        self.world.archive(month, *mails, list_name=list_name, at=at)
        last = "embeddings" if self.kind == "vectors" else "messages"
        self.world.chain(month, list_name, last=last)

    def fill(self, month: str = MARCH, list_name: str = HARBOR) -> Outcome:
        outcome: Outcome = getattr(self.world, self.kind)(month, list_name)
        return outcome

    def entries(self) -> Mapping[str, object]:
        """Return all that the index holds, by key."""
        if self.kind == "words":
            return read_documents(self.world.home / "words")
        found = self.world.index.get(self.world.index.keys(), data=True)
        return {key: (one.values.tobytes(), one.metadata) for key, one in found.items()}

    def items(self) -> list[Any]:
        """Return the entries of March as the index takes them."""
        if self.kind == "vectors":
            return [*self.world.index.get(self.world.index.keys(), data=True).values()]
        place = ListMonth(HARBOR, MARCH)
        with self.world.connect() as connection:
            keys = [*self.mail_index.read_digests(connection, place)]
            return [*make_documents(connection, place, keys)]

    def move(self, name: str) -> str:
        """Put the index elsewhere; return where it was."""
        attribute = "bucket" if self.kind == "vectors" else "words_url"
        before = str(getattr(self.world, attribute))
        setattr(self.world, attribute, name)
        return before

    def assert_agree(self) -> None:
        keys = sorted(self.index.keys())
        with self.world.connect() as connection:
            months = {(name, month) for name, month in self.world.rows("messages", "list, month")}
            wanted = {
                key
                for place in months
                for key in self.mail_index.read_digests(connection, ListMonth(*place))
            }
        assert keys == sorted(wanted)
        place = self.mail_index.manifest.index_name
        where = f"index_name = '{place}'"
        assert self.world.rows(self.kind, "key, written", where) == [(key, True) for key in keys]


@pytest.fixture(params=["vectors", "words"])
def filled(world: World, request: pytest.FixtureRequest) -> Filled:
    return Filled(world, request.param)


def test_run_writes_the_difference_and_deletes_stale_keys(filled: Filled) -> None:
    first = mail("a", from_line=LATER)
    filled.load(first, mail("b"), mail("c"))
    filled.fill()
    filled.load(first, mail("b", "Edited."), mail("d"), at=1)
    outcome = filled.fill()
    assert (outcome.changed, outcome.counts["written"], outcome.counts["deleted"]) == (True, 2, 1)
    filled.assert_agree()
    filled.load(first, mail("b", "Edited."), at=2)
    outcome = filled.fill()
    assert (outcome.counts["written"], outcome.counts["deleted"]) == (0, 1)
    filled.assert_agree()


def test_first_filled_index_is_live_once_it_has_an_entry(filled: Filled) -> None:
    filled.load()
    filled.fill()
    with filled.world.connect() as connection:
        assert live_index(connection, filled.mail_index.url) is None
        filled.load(mail("a"), at=1)
        filled.fill()
        live = live_index(connection, filled.mail_index.url)
    assert live
    assert live.name == filled.mail_index.name


def test_month_that_empties_has_no_entries(filled: Filled) -> None:
    filled.load(mail("a"), mail("b"))
    filled.fill()
    filled.world.archive(MARCH, at=1)
    filled.world.archives(allow_loss=True)
    filled.load(at=1)
    assert (filled.fill().counts["deleted"], [*filled.index.keys()]) == (2, [])
    filled.assert_agree()
    assert not filled.fill().changed


@pytest.mark.parametrize("manifest_is_lost", [False, True], ids=["", "with its manifest"])
def test_dropped_index_is_filled_again(filled: Filled, manifest_is_lost: bool) -> None:
    filled.load(mail("a"), mail("b"))
    filled.fill()
    before = filled.entries()
    filled.index.drop()
    if manifest_is_lost:
        with filled.world.connect() as connection:
            connection.execute(f"delete from {filled.kind}".encode())
    assert filled.fill().counts["written"] == 2
    assert filled.entries() == before
    filled.assert_agree()


def test_dropped_index_leaves_its_other_months_unwritten(filled: Filled) -> None:
    for month in (MARCH, APRIL):
        filled.load(mail(month), month=month)
        filled.fill(month)
    filled.index.drop()
    filled.fill(MARCH)
    assert filled.world.rows(filled.kind, "month, written") == [(MARCH, True), (APRIL, False)]
    with filled.world.connect() as connection:
        behind = find_behind(connection)
    assert behind[ListMonth(HARBOR, APRIL)] == filled.kind or filled.kind == "vectors"
    assert filled.fill(APRIL).counts["written"] == 1
    filled.assert_agree()


def test_lost_entry_is_written_again(filled: Filled) -> None:
    filled.load(mail("a"), mail("b"))
    filled.fill()
    filled.index.delete([min(filled.index.keys())])
    assert filled.fill().counts["written"] == 1
    filled.assert_agree()


def test_foreign_key_of_the_month_is_deleted(filled: Filled) -> None:
    filled.load(mail("a"))
    filled.fill()
    [own] = filled.items()
    if isinstance(own, Vector):
        filled.index.put([Vector("foreign#0", own.values, own.metadata)])
    else:
        filled.index.put([own._replace(key="foreign")])
    assert filled.fill().counts["deleted"] == 1
    filled.assert_agree()


def test_key_that_was_inserted_twice_stands_once_again(filled: Filled) -> None:
    """A run that has lost its lock, and another of the same month, may both insert."""
    filled.load(mail("a"), mail("b"))
    filled.fill()
    filled.index.insert(filled.items()[:1])
    assert filled.index.count() == 3
    assert filled.fill().counts["written"] == 1
    assert filled.index.count() == 2
    filled.assert_agree()
    assert not filled.fill().changed


def test_another_place_is_filled_from_the_start(filled: Filled) -> None:
    filled.load(mail("a"))
    filled.fill()
    old = filled.index
    first = filled.move(f"lance:{filled.world.home / 'other'}")
    assert filled.fill().counts["written"] == 1
    assert [*filled.index.keys()] == [*old.keys()]
    filled.move(first)
    assert not filled.fill().changed


def kill_at(point: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the step at one of its writes."""
    backend: Any = BACKENDS[kind]
    put = backend.put

    def kill(*_: object) -> None:
        raise Killed

    def put_half(index: Any, new: Iterable[Any]) -> None:
        put(index, [*new][:1])
        raise Killed

    target, name, act = {
        "intended": (backend, "insert", kill),
        "inserted": (backend, "put", kill),
        "half put": (backend, "put", put_half),
        "put": (backend, "delete", kill),
        "deleted": (index_month, "drop_keys", kill),
        "dropped": (index_month, "mark_written", kill),
        "marked": (fill_index, "write_state", kill),
    }[point]
    monkeypatch.setattr(target, name, act)


@pytest.mark.parametrize(
    "point", ["intended", "inserted", "half put", "put", "deleted", "dropped", "marked"]
)
def test_killed_run_is_finished_by_the_next(
    filled: Filled, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    filled.load(mail("a"), mail("b"), mail("c"))
    filled.fill()
    filled.load(mail("a"), mail("b", "Edited."), mail("d"), at=1)
    with monkeypatch.context() as patched:
        kill_at(point, filled.kind, patched)
        with pytest.raises(Killed):
            filled.fill()
    unwritten = filled.world.rows(filled.kind, "key", "not written")
    assert len(unwritten) == (0 if point == "marked" else 2)
    filled.fill()
    filled.assert_agree()
    before, entries = filled.world.writes(), filled.entries()
    assert not filled.fill().changed
    assert filled.world.writes() == before
    filled.index.drop()
    filled.fill()
    assert filled.entries() == entries, "as if it were filled from the start"

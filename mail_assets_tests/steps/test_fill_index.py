"""A month of both indexes: filled, finished after a kill, and the content of its entries."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mail_assets.indexes import month as index_month
from mail_assets.indexes.vectors import MailVectors, open_mail_bucket
from mail_assets.indexes.words import MailWords, read_words
from mail_assets.month import ListMonth
from mail_assets.postgres.database import Database
from mail_assets.postgres.statements import statement
from mail_assets.steps import fill_index
from mail_assets.steps.fill_index import make_documents
from mail_assets.store.embeddings import file_key, read_embeddings
from mail_assets.tables.health import find_behind
from mail_assets.tables.indexes import live_index
from mail_assets.vectors.index import Vector, VectorIndex
from mail_assets.vectors.lance import LanceIndex
from mail_assets.words.index import Document
from mail_assets.words.lance import LanceWordIndex
from mail_assets.workspace import Outcome, StepError
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
        if self.kind == "words":
            return read_documents(self.world.home / "words")
        found = self.world.index.get(self.world.index.keys(), data=True)
        return {key: (one.values.tobytes(), one.metadata) for key, one in found.items()}

    def items(self) -> list[Any]:
        """Return the entries of March, in the form that the index accepts."""
        if self.kind == "vectors":
            return [*self.world.index.get(self.world.index.keys(), data=True).values()]
        place = ListMonth(HARBOR, MARCH)
        with self.world.connect() as connection:
            keys = [*self.mail_index.read_digests(connection, place)]
            return [*make_documents(connection, place, keys)]

    def move(self, name: str) -> str:
        """Move the index to another place; return the old place."""
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


def test_key_inserted_twice_is_reduced_to_one(filled: Filled) -> None:
    """A run that lost its lock, and another run of the same month, can both insert."""
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


load_embeddings = partial(World.load, last="embeddings")


def bucket(world: World) -> dict[str, Vector]:
    return world.index.get(world.index.keys(), data=True)


def assert_vectors_agree(world: World) -> None:
    chunks = {key for (key,) in world.rows("chunks", "key")}
    assert bucket(world).keys() == chunks
    assert world.rows("vectors", "key, written") == sorted((key, True) for key in chunks)


def test_each_chunk_has_its_vector_and_filter_fields(world: World) -> None:
    load_embeddings(world, mail("a", sender="Ann@Example.org", subject="Re: leases"), mail("b"))
    outcome = world.vectors()
    assert_vectors_agree(world)
    assert outcome.counts["chunks"] == outcome.counts["written"] == 2
    values = read_embeddings(
        world.store, file_key(ListMonth(HARBOR, MARCH), world.encoder.fingerprint)
    )
    hashes = dict(world.rows("chunks", "key, text_hash"))
    for key, vector in bucket(world).items():
        assert np.array_equal(vector.values, values[bytes(hashes[key])])
    [a] = [v for v in bucket(world).values() if v.metadata["message_id"] == "a@example.org"]
    assert a.metadata == {
        "list": HARBOR,
        "month": 202403,
        "message_id": "a@example.org",
        "sender": "ann@example.org",
        "sent_at": 1709542800,
        "chunk": 0,
        "kind": "text",
        "subject": "leases",
        "fingerprint": world.encoder.fingerprint,
    }


def test_vector_is_rewritten_when_only_its_metadata_changed(world: World) -> None:
    load_embeddings(world, mail("a"), mail("b"))
    world.vectors()
    load_embeddings(world, mail("a"), mail("b", date="Tue, 05 Mar 2024 09:00:00 +0000"), at=1)
    assert len(world.encoder.texts) == 2
    assert world.vectors().counts["written"] == 1
    [b] = [v for v in bucket(world).values() if v.metadata["message_id"] == "b@example.org"]
    assert b.metadata["sent_at"] == 1709542800 + 86400


def test_only_outdated_vectors_are_replaced(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    put: list[str] = []

    def noted(index: LanceIndex, vectors: Iterable[Vector]) -> int:
        new = [*vectors]
        put.extend(str(vector.metadata["message_id"]) for vector in new)
        return VectorIndex.put(index, new)

    monkeypatch.setattr(LanceIndex, "put", noted)
    load_embeddings(world, mail("a"), mail("b"))
    world.vectors()
    assert put == []
    load_embeddings(world, mail("a"), mail("b", "Edited."), mail("c"), at=1)
    world.vectors()
    assert put == ["b@example.org"]
    assert_vectors_agree(world)


def test_metadata_of_any_length_fits_the_bucket(world: World) -> None:
    load_embeddings(world, mail("a"))
    with world.connect() as connection:
        # a control character takes six bytes of the metadata's JSON
        long = {"id": "\x01" * 3000, "sender": "\U0001f4ee" * 3000}
        connection.execute("update messages set message_id = %(id)s, subject_base = %(id)s", long)
        connection.execute("update messages set from_email = %(sender)s", long)
        connection.execute("update chunks set message_id = %(id)s", long)
    world.vectors()
    assert_vectors_agree(world)


def test_embeddings_of_another_encoder_are_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_embeddings(world, mail("a"))
    monkeypatch.setattr(world.encoder, "fingerprint", "another encoder")
    with pytest.raises(StepError, match=f"{HARBOR} {MARCH}: no embeddings of encoder") as error:
        world.vectors()
    assert str(error.value).endswith("materialize embeddings first")


def test_outdated_embeddings_are_refused_before_any_write(world: World) -> None:
    load_embeddings(world, mail("a"))
    world.vectors()
    before = world.holds()
    world.archive(MARCH, mail("a"), mail("b"), at=1)
    world.chain(last="chunks")
    with pytest.raises(StepError, match="lacks 1 of 1 texts; materialize embeddings"):
        world.vectors()
    after = world.holds()
    assert (after["manifest"], after["bucket"]) == (before["manifest"], before["bucket"])


def test_embeddings_of_another_dimension_are_refused(world: World) -> None:
    world.encoder.dimension = 383
    load_embeddings(world, mail("a"))
    with pytest.raises(
        StepError, match=r"\.parquet has vectors of 383 .* takes 384; delete the fi"
    ):
        world.vectors()
    assert world.rows("vectors") == []
    world.encoder.dimension = 384
    world.store.delete(file_key(ListMonth(HARBOR, MARCH), world.encoder.fingerprint))
    world.embeddings()
    assert world.vectors().counts["written"] == 1


def test_embedded_pgvector_is_refused_without_its_cpu_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mail_assets.indexes.vectors.vector_cpu_ok", lambda: False)
    with pytest.raises(ValueError, match=r"AVX2 .* MAIL_PG_DSN .* lance:"):
        open_mail_bucket(Database(tmp_path), "pgvector:")


def test_pgvector_of_your_own_server_needs_no_cpu_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres_dsn: str
) -> None:
    monkeypatch.setattr("mail_assets.indexes.vectors.vector_cpu_ok", lambda: False)
    assert open_mail_bucket(Database(tmp_path, postgres_dsn), "pgvector:").indexes() == []


PATCH = "See this:\n\n--- a/quay.c\n+++ b/quay.c\n@@ -1 +1 @@\n-int old;\n+int quay;\n"


load_messages = partial(World.load, last="messages")


def documents(world: World) -> dict[str, dict[str, Any]]:
    return read_documents(world.home / "words")


def ids(world: World) -> dict[str, str]:
    """Return the id of each document, by key."""
    return {key: row["message_id"] for key, row in documents(world).items()}


def made(world: World, month: str = MARCH) -> dict[str, Document]:
    """Return the current documents of a month by Message-ID."""
    place = ListMonth(HARBOR, month)
    with world.connect() as connection:
        keys = world.mail_words.read_digests(connection, place)
        found = [*fill_index.make_documents(connection, place, [*keys])]
    return {document.message_id.partition("@")[0]: document for document in found}


def assert_words_agree(world: World) -> None:
    keys = [*world.mail_words.index.keys()]
    assert len(keys) == len({*keys})
    assert world.rows("words", "key, written") == sorted((key, True) for key in keys)
    assert sorted(ids(world).values()) == [x for (x,) in world.rows("messages", "message_id")]


def test_document_has_the_lexemes_of_the_message_in_order(world: World) -> None:
    text = "The pier leases boats.\n\nBoats need pier_init()."
    load_messages(world, mail("a", text, subject="Quay wall"))
    subject = ["quay", "wall"] * 4
    body = ["pier", "leas", "boat", "boat", "need", "pier", "init", "pier_init"]
    assert [*made(world)["a"].lexemes] == subject + body


def test_learnt_footer_stays_searchable(world: World) -> None:
    """Also if forgers outnumber the people of the list: each word of the footer is found."""
    objection = "I object to xylophones on this mailing list before quay_wall() is fixed."
    victims = mail("v", f"I measured it.\n\n{objection}", sender="vic@example.org")
    forged = [
        mail(
            f"f{n}",
            f"So {'x' * n}.\n\n{objection}",
            sender=f"f{n}@example.com",
            date=f"{5 + n} Mar 2024 09:00:00 +0000",
        )
        for n in range(9)
    ]
    load_messages(world, victims, *forged)
    of_victim = "message_id = 'v@example.org'"
    assert world.rows("messages", "segments -> 1 ->> 2", of_victim) == [("footer",)]
    lexemes = made(world)["v"].lexemes
    assert {"xylophon", "object", "list", "quay_wall", "fix"} <= {*lexemes}
    found = "search @@ phraseto_tsquery('english', 'object to xylophones')"
    assert world.rows("messages", found, of_victim) == [(True,)]


def test_document_has_the_words_of_signatures(world: World) -> None:
    load_messages(
        world, mail("a", "Hello.\n\n-- \nJo Roe\nQuay Works\n"), mail("b", "> quoted\nNo.\n")
    )
    assert {"roe", "quay", "work"} <= {*made(world)["a"].lexemes}
    assert "quot" in made(world)["b"].lexemes, "a first message quotes nothing"


def test_names_are_fetched_once_for_a_document(world: World) -> None:
    """A long array is stored in pieces; reading it for each word would be slow."""
    names, words = 2_000, 2_000
    body = [f"calls_{number:x}_{number * 7919:x}()" for number in range(names)]
    body += [f"word{number}s" for number in range(words)]
    load_messages(world, mail("a", "\n".join(body)))
    with world.connect() as connection:
        text = str(statement("words", "documents"))
        month = ListMonth(HARBOR, MARCH)
        asked = {**month.columns, "message_ids": ["a@example.org"], "variants": [0]}
        query = f"explain (analyze, buffers, timing off, format json) {text}"
        plan = connection.execute(query, asked).fetchone()
    assert plan
    root = plan[0][0]["Plan"]
    assert root["Actual Rows"] == 1
    assert root["Shared Hit Blocks"] + root["Shared Read Blocks"] < words


def test_document_has_the_fields_of_filters(world: World) -> None:
    load_messages(
        world, mail("a", sender="Ann@Example.org"), mail("b", PATCH, references="<a@example.org>")
    )
    found = made(world)
    assert (found["a"].sender, found["a"].sent_at) == ("ann@example.org", 1709542800)
    assert found["a"].month == ListMonth(HARBOR, MARCH)
    assert {name: one.flags for name, one in found.items()} == {
        "a": ("first",),
        "b": ("patch", "reply"),
    }


def test_two_contents_of_one_id_are_two_documents(world: World) -> None:
    load_messages(world, mail("a", "Tides."), mail("a", "Ebb."))
    world.words()
    assert sorted(row["variant"] for row in documents(world).values()) == [0, 1]
    assert_words_agree(world)


def test_only_changed_messages_are_read_and_written(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_messages(world, mail("a"), mail("b"), mail("c"))
    world.words()
    load_messages(world, mail("a"), mail("b", "Edited."), mail("d"), at=1)
    read: list[str] = []

    def noting(connection: Any, month: ListMonth, keys: list[str]) -> Any:
        read.extend(keys)
        return read_words(connection, month, keys)

    monkeypatch.setattr(fill_index, "read_words", noting)
    outcome = world.words()
    assert (outcome.counts["written"], outcome.counts["deleted"], len(read)) == (2, 1, 2)
    assert_words_agree(world)
    [edited] = [r for r in documents(world).values() if r["message_id"] == "b@example.org"]
    assert "edit" in edited["lexemes"]


def test_load_during_the_write_is_seen_by_the_next_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_messages(world, mail("a"), mail("b"))
    insert = LanceWordIndex.insert

    def insert_late(index: LanceWordIndex, new: Iterable[Document]) -> None:
        insert(index, new)
        monkeypatch.undo()
        load_messages(world, mail("a", "Edited."), at=1)

    monkeypatch.setattr(LanceWordIndex, "insert", insert_late)
    world.words()
    assert world.words().changed
    assert_words_agree(world)

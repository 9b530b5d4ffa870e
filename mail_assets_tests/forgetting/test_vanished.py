"""Mail that vanished from its source before it was forgotten is removed everywhere too."""

from collections.abc import Callable

import pytest

from mail_assets.forgetting.forget import (
    ForgetReport,
    ForgetRequest,
    cut_archives,
    find_archives_holding,
)
from mail_assets.indexes.vectors import MailVectors, index_spec
from mail_assets.indexes.words import open_mail_words
from mail_assets.mail.message.ids import make_placeholder
from mail_assets.month import ListMonth
from mail_assets.steps.encode_chunks import encode_chunks
from mail_assets.steps.fill_index import write_vectors, write_words
from mail_assets.store.embeddings import read_hashes
from mail_assets.tables.removals import list_removals
from mail_assets.tables.removed_messages import unwanted_documents, unwanted_keys
from mail_assets.vectors.index import VectorIndex
from mail_assets.vectors.open import open_bucket
from mail_assets.workspace import ListDefaults
from mail_assets_tests.kept_worlds import kept_world
from mail_assets_tests.world import APRIL, DIGESTS, HARBOR, MARCH, PROFILE, Hashing, World, mail

EVE = "eve@example.net"
HERE = ListMonth(HARBOR, MARCH)
BY_ID = ForgetRequest(["secret@example.org"], [], "asked to", "the postmaster")
BY_SENDER = ForgetRequest([], [EVE], "asked to", "the postmaster")

SECRET = mail("secret", "The master sleeps.")
HERS = mail("hers", "At high tide.", sender=EVE)
MORE = mail("more", "At low tide.", sender=EVE)
OTHERS = [mail("a"), mail("b")]
ANSWER = mail("answer", references="<secret@example.org> <hers@example.org>")


class OtherEncoder(Hashing):
    """Makes the vectors of an index next to the configured one."""

    fingerprint = "other-encoder-of-tests"


def fill_world(made: World) -> None:
    """A month in two indexes of each kind, and one that answers to its mail."""
    made.keep_days = 30
    made.archive(MARCH, OTHERS[0], SECRET, HERS, OTHERS[1])
    made.archive(APRIL, ANSWER)
    for month in (MARCH, APRIL):
        made.chain(month, last="chunks")
        with made.workspace() as workspace:
            one, encoder = ListMonth(HARBOR, month), OtherEncoder(made.home / "models")
            encode_chunks(workspace, one, encoder)
            other = MailVectors(
                other_index(made), made.bucket, PROFILE, "fp32", encoder.fingerprint
            )
            write_vectors(workspace, one, other)
            write_words(workspace, one, open_mail_words(made.words_url, "words-1"))
        made.fill(month)


world = kept_world(fill_world)


def other_index(world: World) -> VectorIndex:
    return open_bucket(world.bucket).index(index_spec(PROFILE, "fp32"))


def lose_all(world: World) -> None:
    (world.folder() / f"{HARBOR}.{MARCH}.mbox").unlink()


def lose_some(world: World) -> None:
    world.archive(MARCH, *OTHERS, at=1)


def vanish(world: World, lose: Callable[[World], None]) -> str:
    """Let mail vanish; return the URL of the former archive."""
    [(key,)] = world.rows("mbox_archives", "object_key", f"month = '{MARCH}'")
    lose(world)
    world.archives(MARCH, allow_loss=True)
    world.fill(MARCH)
    return world.store.url(key)


def forget(
    world: World, request: ForgetRequest, defaults: dict[str, ListDefaults] | None = None
) -> tuple[ForgetReport, list[str], dict[str, str]]:
    """Forget as the command does: the report, the archives still named, and what was not cut."""
    report = world.forget(request)
    with world.workspace() as workspace:
        _, failed = cut_archives(
            workspace, report.uncut, defaults or {HARBOR: ListDefaults("english")}
        )
        return report, find_archives_holding(workspace, report.removals, report.former), failed


def keys_left(world: World) -> list[str]:
    """Return what an index or a file has beyond chunks and messages."""
    chunks = {key for (key,) in world.rows("chunks", "key")}
    messages = {key.partition("#")[0] for key in chunks}
    texts = {bytes(text) for (text,) in world.rows("chunks", "text_hash")}
    left = {*world.index.keys(), *other_index(world).keys()} - chunks
    for name in ("words-1", world.mail_words.name):
        left |= {*open_mail_words(world.words_url, name).index.keys()} - messages
    for key in world.store.keys("embeddings/"):
        left |= {text.hex() for text in {*read_hashes(world.store, key)} - texts}
    return sorted(left)


def traces(world: World, *traces: str) -> list[str]:
    tables = world.rows("pg_tables", "tablename", "schemaname = 'public'")
    rows = "\n".join(str(world.rows(f'"{name}" as t', "t::text")) for (name,) in tables).lower()
    return [trace for trace in traces if trace in rows]


@pytest.mark.parametrize(("lose", "cut", "request_", "name"), [
    (lose_all, False, BY_ID, "secret@example.org"),
    (lose_all, True, BY_SENDER, "hers@example.org"),
    (lose_some, False, BY_SENDER, "hers@example.org"),
    (lose_some, True, BY_ID, "secret@example.org"),
], ids=["month kept", "month rewritten", "sender kept", "id rewritten"])  # fmt: skip
def test_vanished_mail_is_forgotten_now_and_when_it_returns(
    world: World, lose: Callable[[World], None], cut: bool, request_: ForgetRequest, name: str
) -> None:
    former = vanish(world, lose)
    assert keys_left(world)
    assert traces(world, name, "secret@", "hers@") == [name, "secret@", "hers@"]
    report, holding, failed = forget(world, request_._replace(cut=cut))
    assert (report.copies, report.vanished, report.failed, failed) == ([], 1, {}, {})
    assert keys_left(world) == []
    assert traces(world, name, EVE) == []
    assert (make_placeholder(DIGESTS.of_message(name)),) in world.rows("threads", "message_id")
    assert holding == ([] if cut else [former])
    bodies = b"".join((world.home / "store" / x).read_bytes() for x in world.store.keys("archives"))
    text = b"sleeps" if name.startswith("secret") else b"high tide"
    assert (text in bodies) == (not cut)
    assert (b"high tide" in bodies, b"sleeps" in bodies).count(False) == cut, "what others wrote"
    world.load(OTHERS[0], SECRET, HERS, OTHERS[1], at=2, last="vectors")
    with world.connect() as connection:
        assert not unwanted_keys(connection)
        assert not unwanted_documents(connection)
        [removal] = list_removals(connection)
    assert removal.copies == 1
    assert traces(world, name) == []
    again, holding, _ = forget(world, request_._replace(cut=cut))
    assert (again.vectors, again.documents, again.vanished) == (0, 0, 0)
    assert bool(holding) != cut


def test_mail_of_a_sender_in_no_archive_leaves_no_vector(world: World) -> None:
    world.keep_days = 0
    vanish(world, lose_some)
    world.archives()
    assert len([*world.store.keys(f"archives/{HARBOR}/{MARCH}/")]) == 1
    report, holding, _ = forget(world, BY_SENDER)
    assert (report.vectors, report.documents, holding) == (2, 2, [])
    assert keys_left(world) == []


def test_every_former_archive_with_it_is_named_or_cut(world: World) -> None:
    world.load(OTHERS[0], SECRET, HERS, OTHERS[1], MORE, at=1, last="vectors")
    vanish(world, lose_all)
    report, holding, _ = forget(world, BY_SENDER)
    assert (report.vanished, len(holding)) == (2, 2)
    assert forget(world, BY_SENDER)[1] == holding, "again"
    assert forget(world, BY_SENDER._replace(cut=True))[1:] == ([], {})
    assert len(world.rows("former_archives")) == 1, "without it both are the same"


def test_damaged_former_archive_is_named_and_the_rest_cleaned(world: World) -> None:
    former = vanish(world, lose_some)
    [(key,)] = world.rows("former_archives", "object_key")
    (world.home / "store" / key).write_bytes(b"no mail at all")
    report, holding, _ = forget(world, BY_SENDER)
    assert [*report.unread] == [former]
    assert "not an mbox" in report.unread[former]
    assert (report.vectors, report.documents, holding) == (2, 2, [])
    assert keys_left(world) == []


def test_mail_of_others_that_vanished_stays_recorded(world: World) -> None:
    vanish(world, lose_all)
    forget(world, BY_SENDER)
    assert {one for (one,) in world.rows("removed_upstream", "message_id")} == {
        "a@example.org", "b@example.org", "secret@example.org"
    }  # fmt: skip

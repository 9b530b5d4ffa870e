"""Mail under the Message-ID of forgotten mail stays in its thread and in search."""

import pytest

from mail_assets.forgetting.forget import (
    ForgetReport,
    ForgetRequest,
    find_archives_holding,
    forget_again,
)
from mail_assets.indexes.vectors import open_known_index
from mail_assets.mail.message.ids import make_placeholder
from mail_assets.month import ListMonth
from mail_assets.postgres.database import Database
from mail_assets.postgres.statements import statement
from mail_assets.reading.browsing import list_messages, show_message
from mail_assets.tables.health import find_behind
from mail_assets.tables.removals import CutMessage, read_forgotten, record_cut, withdraw_removals
from mail_assets.tables.removed_messages import (
    count_rows_left,
    count_threads_left,
    key_prefix,
    read_key_prefixes,
    unwanted_documents,
    unwanted_keys,
)
from mail_assets_tests.world import APRIL, DIGESTS, HARBOR, MARCH, PIER, World, mail

EVE = "eve@example.net"
HERS = mail("a", "An impostor.", sender=EVE)
THEIRS = mail("a", "The tide is high.")
REPLY = mail("r", references="<a@example.org>")
MONTHS = [ListMonth(HARBOR, MARCH), ListMonth(HARBOR, APRIL), ListMonth(PIER, MARCH)]

#: The thread of the mail that stays.
THREAD = [("a@example.org", None, False), ("r@example.org", "a@example.org", False)]


def forget(world: World, cut: bool = False) -> tuple[ForgetReport, list[str]]:
    """Forget Eve; return the report, and the archives that still hold her mail."""
    report = world.forget(ForgetRequest([], [EVE], "asked to", "the postmaster", cut=cut))
    world.cut(report)
    with world.workspace() as workspace:
        return report, find_archives_holding(workspace, report.removals, report.former)


def count_left(world: World) -> int:
    """Count what the check of forgotten mail counts, and what indexes lack of other mail."""
    vectors, documents = {*world.index.keys()}, {*world.mail_words.index.keys()}
    chunks = {key for (key,) in world.rows("chunks", "key")}
    left = len(vectors ^ chunks) + len(documents ^ {key.partition("#")[0] for key in chunks})
    with world.connect() as connection:
        forgotten = read_forgotten(connection, world.forget_key)
        left += len(unwanted_keys(connection)) + len(unwanted_documents(connection))
        for month in MONTHS:
            left += count_rows_left(connection, month, forgotten)
            left += count_threads_left(connection, month, forgotten)
            left += len(documents & {*read_key_prefixes(connection, month)})
    return left


def thread(world: World) -> list[tuple[object, ...]]:
    return world.rows("threads", "message_id, parent_message_id, is_ghost", "thread_id like 'a@%'")


def bodies(world: World) -> list[tuple[object, ...]]:
    return world.rows("messages", "variant, body_text", "message_id = 'a@example.org'")


def test_forgotten_first_content_leaves_those_of_others(world: World) -> None:
    world.load(REPLY, month=APRIL, last="vectors")
    orders = [(HERS, THEIRS), (HERS, THEIRS), (THEIRS,), (THEIRS, HERS), (HERS, THEIRS)]
    for at, order in enumerate(orders):
        world.archive(MARCH, *order, mail(f"x{at}"), at=at)
        world.fill(MARCH)
        if at == 0:
            forget(world)
        assert count_left(world) == 0
        assert thread(world) == THREAD
        assert [body for _, body in bodies(world)] == ["The tide is high.\n"]
        assert forget(world)[0].documents == 0
        assert count_left(world) == 0


def test_id_that_other_mail_has_is_not_hidden(world: World) -> None:
    world.archive(MARCH, THEIRS, list_name=PIER)
    world.archive(MARCH, HERS, mail("x"))
    world.archive(APRIL, REPLY)
    world.chain(MARCH, PIER)
    world.fill(MARCH, APRIL)
    forget(world)
    for at in range(2):
        assert count_left(world) == 0
        assert thread(world) == THREAD
        world.archive(MARCH, HERS, mail("x"), mail(f"x{at}"), at=1 + at)
        world.fill(MARCH)


def test_id_that_other_mail_brings_later_is_shown_again(world: World) -> None:
    world.archive(MARCH, HERS, mail("x"))
    world.archive(APRIL, REPLY)
    for month in (MARCH, APRIL):
        world.chain(month)
    forget(world)
    hidden = make_placeholder(DIGESTS.of_message("a@example.org"))
    assert world.rows("messages", "refs", "message_id like 'r@%'") == [([hidden],)]
    world.archive(MARCH, mail("p", references="<a@example.org>"), THEIRS, list_name=PIER)
    world.chain(MARCH, PIER)
    with world.connect() as connection:
        assert find_behind(connection) == {ListMonth(HARBOR, APRIL): "messages"}
    world.fill(APRIL)
    assert count_left(world) == 0
    reply = ("p@example.org", "a@example.org", False)
    assert thread(world) == [THREAD[0], reply, THREAD[1]]
    assert [name for (name,) in world.rows("threads", "message_id") if "forgotten" in name] == []


def test_mail_in_place_of_forgotten_mail_stays_in_the_indexes(world: World) -> None:
    world.load(HERS, mail("x"), last="vectors")
    forget(world)
    world.load(mail("x"), at=1, last="vectors")
    world.archive(MARCH, THEIRS, mail("x"), at=2)
    world.fill(MARCH)
    for _ in range(2):
        assert count_left(world) == 0
        assert bodies(world) == [(0, "The tide is high.\n")]
        assert forget(world)[0].documents == 0


def test_archive_loses_only_it_and_has_it_when_remembered(world: World) -> None:
    world.archive(MARCH, HERS, THEIRS)
    world.archive(APRIL, REPLY)
    world.fill(MARCH, APRIL)
    before = bodies(world)
    for at in range(2):
        assert forget(world, cut=True)[1] == []
        world.fill(MARCH)
        assert count_left(world) == 0
        assert thread(world) == THREAD
        assert bodies(world) == [(0, "The tide is high.\n")]
        world.load(HERS, THEIRS, mail("x"), at=1 + at, last="vectors")
    with world.connect() as connection:
        assert withdraw_removals(connection, [DIGESTS.of_sender(EVE)])[0] == 1
    world.chain(MARCH)
    assert bodies(world) == before


@pytest.mark.parametrize("cut", [False, True], ids=["keep", "rewrite"])
def test_former_archive_with_it_leaves_the_mail_of_others(world: World, cut: bool) -> None:
    world.keep_days = 30
    world.load(HERS, mail("x"), mail("lost"), last="vectors")
    world.archive(MARCH, THEIRS, mail("x"), at=1)
    world.fill(MARCH)
    for _ in range(2):
        _, holding = forget(world, cut)
        assert bool(holding) != cut
        world.chain(MARCH)
        assert count_left(world) == 0
        assert bodies(world) == [(0, "The tide is high.\n")]


def test_backup_with_it_leaves_the_mail_of_others(world: World) -> None:
    world.archive(MARCH, THEIRS)
    world.archive(APRIL, REPLY)
    world.fill(MARCH, APRIL)
    forget(world)
    removal, hidden = DIGESTS.of_sender(EVE), DIGESTS.of_message("a@example.org")
    database = Database(world.home, world.dsn)
    with world.workspace() as workspace:
        for month in (MONTHS[0], MONTHS[2]):
            prefix = key_prefix(month, "a@example.org", "")
            record_cut(workspace.connection, month, [CutMessage(removal, hidden, prefix)])
        report = forget_again(workspace, lambda name: open_known_index(database, name))
    assert (report.copies, report.documents, report.vectors) == ([], 0, 0)
    assert count_left(world) == 0
    assert thread(world) == THREAD


def test_id_is_hidden_when_no_other_mail_has_it_any_more(world: World) -> None:
    world.archive(MARCH, HERS, mail("a", "Eve once more.", sender=EVE), mail("x"))
    world.archive(APRIL, REPLY)
    world.fill(MARCH, APRIL)
    forget(world)
    assert count_left(world) == 0
    assert world.rows("threads", "message_id", "message_id like 'a@%'") == []
    assert world.rows("removed_messages", "message_digest is null") == [(False,), (False,)]


def test_similar_mail_is_found_by_the_first_content_left(world: World) -> None:
    world.load(HERS, THEIRS, last="vectors")
    forget(world)
    asked = {"message_id": "a@example.org", "most": 5}
    with world.connect() as connection:
        texts = connection.execute(statement("search", "chunk_texts"), asked).fetchall()
    assert [text for text, _ in texts] == ["The tide is high."]


def test_last_content_of_an_id_is_no_variant(world: World) -> None:
    world.archive(MARCH, HERS, THEIRS)
    world.fill(MARCH)

    def find_flags() -> list[tuple[bool, bool, object]]:
        with world.connect() as connection:
            shown = [
                (one["flags"], one["text"]) for one in show_message(connection, "a@example.org")
            ]
            listed = [one["flags"] for one in list_messages(connection, HARBOR, MARCH)]
        pairs = zip(listed, shown, strict=True)
        return [("variant" in one, "variant" in flags, text) for one, (flags, text) in pairs]

    assert find_flags() == [(False, False, 1), (True, True, 2)]
    forget(world)
    assert find_flags() == [(False, False, None)]
    world.chain(MARCH)
    assert find_flags() == [(False, False, None)]

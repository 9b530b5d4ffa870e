"""Fetching the archive of a month: what is kept, what is refused, what is swept."""

import gzip
import re
from pathlib import Path
from typing import BinaryIO, NamedTuple

import pytest

from mail_assets.mail.archive.compression import open_archive
from mail_assets.sources.source import SourceError
from mail_assets.steps.outcome import StepError
from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, World, mail

OTHER_FROM = "From other@example.org Tue Mar  5 10:11:12 2024"


def mails(count: int) -> list[bytes]:
    return [mail(f"m{number}") for number in range(count)]


def test_an_archive_is_kept_as_its_source_has_it(world: World) -> None:
    path = world.archive(MARCH, *mails(3))
    outcome = world.archives()
    [(key, sha256)] = world.rows("mbox_archives", "object_key, sha256")
    assert key == f"archives/{HARBOR}/{MARCH}/{sha256[:16]}.mbox"
    assert (world.home / "store" / key).read_bytes() == path.read_bytes()
    assert outcome.changed
    assert outcome.counts["found"] == 3
    assert outcome.counts["bytes"] == path.stat().st_size
    assert outcome.counts["fetched"] == 1


def test_a_compressed_archive_says_so_in_its_name(world: World) -> None:
    (world.folder() / f"{HARBOR}.{MARCH}.mbox.gz").write_bytes(gzip.compress(mail("a")))
    assert world.archives().counts["found"] == 1
    [(key,)] = world.rows("mbox_archives", "object_key")
    assert key.endswith(".mbox.gz")


def test_an_unchanged_archive_writes_nothing(world: World) -> None:
    world.archive(MARCH, *mails(3))
    first, before = world.archives(), world.writes()
    again = world.archives()
    assert world.writes() == before
    assert not again.changed
    assert again.digest == first.digest
    assert again.counts["fetched"] == 0
    assert again.counts["found"] == 3


def test_other_from_lines_are_no_news(world: World) -> None:
    world.archive(MARCH, *mails(3))
    first = world.archives()
    files = world.file_times()
    [before] = world.rows("mbox_archives", "object_key, sha256, bytes, version")
    world.archive(MARCH, *(mail(f"m{n}", from_line=OTHER_FROM) for n in range(3)), at=1)
    again = world.archives()
    assert again.counts["fetched"] == 1
    assert not again.changed
    assert again.digest == first.digest
    assert world.file_times() == files
    [after] = world.rows("mbox_archives", "object_key, sha256, bytes, version")
    assert after[:3] == before[:3]
    assert after[3] != before[3], "the new version is known, so that it is not fetched again"
    assert world.archives().counts["fetched"] == 0


def test_a_month_without_archive_is_empty_and_says_so(world: World) -> None:
    world.archive(MARCH, *mails(1))
    outcome = world.archives(APRIL)
    assert outcome.note == "the source has no archive for this month"
    assert outcome.counts["found"] == outcome.counts["bytes"] == 0
    assert world.rows("mbox_archives", "month, object_key") == [(APRIL, None)]
    before = world.writes()
    assert not world.archives(APRIL).changed
    assert world.writes() == before


def test_an_archive_that_comes_late_is_fetched(world: World) -> None:
    world.archives()
    world.archive(MARCH, *mails(2))
    outcome = world.archives()
    assert outcome.changed
    assert not outcome.note
    assert outcome.counts["found"] == 2


class Loss(NamedTuple):
    """From so many messages to so many; None is an archive that is gone."""

    old: int
    new: int | None
    refused: bool


LOSSES = [
    Loss(1, 0, False),
    Loss(10, 9, False),
    Loss(10, 8, True),
    Loss(100, 97, False),
    Loss(100, 96, True),
    Loss(5, 0, True),
    Loss(5, None, True),
    Loss(1, None, True),
    Loss(0, None, False),
]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_loss_is_refused_beyond_one_message_and_three_per_cent(world: World, loss: Loss) -> None:
    path = world.archive(MARCH, *mails(loss.old))
    world.archives()
    before = world.writes()
    if loss.new is None:
        path.unlink()
    else:
        world.archive(MARCH, *mails(loss.new), at=1)
    if not loss.refused:
        assert world.archives().counts["found"] == (loss.new or 0)
        return
    with pytest.raises(StepError) as refusal:
        world.archives()
    text = str(refusal.value)
    lost = loss.old - (loss.new or 0)
    assert f"{HARBOR} {MARCH}: the archive held {loss.old} messages" in text
    assert ("has vanished" if loss.new is None else f"now has {loss.new}") in text
    assert f"({lost} lost, " in text
    assert "allow_loss: true" in text
    assert world.writes() == before
    assert world.archives(allow_loss=True).counts["found"] == (loss.new or 0)


def test_a_superseded_file_stays_while_messages_need_it(world: World) -> None:
    world.archive(MARCH, *mails(2))
    world.chain(last="messages")
    [old] = world.store.keys("archives/")
    world.archive(MARCH, *mails(3), at=1)
    world.archives()
    assert len([*world.store.keys("archives/")]) == 2
    world.archive(MARCH, *mails(4), at=2)
    world.archives()
    kept = {*world.store.keys("archives/")}
    assert len(kept) == 2, "the file between the two is needed by nobody"
    assert old in kept
    world.messages()
    world.archives()
    [new] = world.store.keys("archives/")
    assert new != old


def test_sweeping_leaves_other_months_and_lists_alone(world: World) -> None:
    for month, name in [(MARCH, HARBOR), (APRIL, HARBOR), (MARCH, PIER)]:
        world.archive(month, *mails(2), list_name=name)
        world.archives(month, name)
    world.archive(MARCH, *mails(3), at=1)
    world.archives()
    folders = sorted(key.rpartition("/")[0] for key in world.store.keys("archives/"))
    assert folders == [
        f"archives/{HARBOR}/{MARCH}",
        f"archives/{HARBOR}/{APRIL}",
        f"archives/{PIER}/{MARCH}",
    ]


def test_a_file_that_the_store_has_lost_is_fetched_again(world: World) -> None:
    world.archive(MARCH, *mails(2))
    world.archives()
    [key] = world.store.keys("archives/")
    world.store.delete(key)
    outcome = world.archives()
    assert outcome.counts["fetched"] == 1
    assert outcome.changed
    assert [*world.store.keys("archives/")] == [key]


def test_another_dialect_reads_the_same_bytes_anew(world: World) -> None:
    world.dialect = "mboxrd"
    world.archive(MARCH, mail("a", ">From here on the text is quoted."))
    before = world.archives()
    world.dialect = "plain"
    after = world.archives()
    assert after.counts["fetched"] == 0, "the kept file is read again"
    assert after.digest != before.digest
    assert world.archives().counts["fetched"] == 0


def test_the_same_messages_quoted_otherwise_are_read_right_in_the_next_dialect(
    world: World,
) -> None:
    world.dialect = "mboxo"
    world.archive(MARCH, mail("a", ">From here on the text is easy."))
    world.archives()
    world.archive(MARCH, mail("a", "From here on the text is easy."), at=1)
    assert not world.archives().changed, "as mboxo both say the same"
    world.dialect = "plain"
    world.archives()
    world.messages()
    assert world.rows("messages", "body_text") == [("From here on the text is easy.\n",)]


def test_an_edited_message_is_a_new_file(world: World) -> None:
    world.archive(MARCH, mail("a"), mail("b"))
    before = world.archives()
    world.archive(MARCH, mail("a"), mail("b", "Edited by a moderator."), at=1)
    after = world.archives()
    assert after.changed
    assert after.digest != before.digest


def test_what_is_no_archive_is_refused_and_changes_nothing(world: World) -> None:
    world.archive(MARCH, mail("a"))
    world.archives()
    before = world.writes()
    (world.folder() / f"{HARBOR}.{MARCH}.mbox").write_bytes(b"<html>please log in</html>")
    with pytest.raises(SourceError, match=re.escape(f"list {HARBOR}, month {MARCH}")):
        world.archives()
    assert world.writes() == before


PIPERMAIL = b"""\
From jo at example.org  Mon Mar  4 09:00:00 2024
From: jo at example.org (Jo Doe)
Date: Mon, 04 Mar 2024 09:00:00 +0000
Subject: tides
Message-ID: <tides@example.org>

High water at nine.

"""


def test_a_dialect_that_is_not_set_is_found_out(world: World) -> None:
    world.dialect = None
    world.archive(MARCH, PIPERMAIL)
    world.archives()
    world.messages()
    assert world.rows("mbox_archives", "dialect, found_dialect") == [("pipermail", "pipermail")]
    assert world.rows("messages", "from_name, from_email") == [("Jo Doe", "jo@example.org")]


def test_a_dialect_that_is_set_is_kept_beside_what_was_found(world: World) -> None:
    world.dialect = "mboxrd"
    world.archive(MARCH, PIPERMAIL)
    world.archives()
    assert world.rows("mbox_archives", "dialect, found_dialect") == [("mboxrd", "pipermail")]


def test_an_archive_of_a_former_version_is_examined_again(world: World) -> None:
    world.archive(MARCH, mail("a"))
    world.archives()
    with world.connect() as connection:
        connection.execute("update mbox_archives set dialect = '', found_dialect = ''")
        connection.execute("update partitions set inputs = 'a plain' where asset = 'mbox_archives'")
    with pytest.raises(StepError, match="no archive yet; materialize mbox_archives first"):
        world.messages()
    world.archives()
    assert world.messages().counts["stored"] == 1


def test_a_fetched_file_is_decompressed_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []

    def count(path: Path) -> BinaryIO:
        opened.append(path.name)
        return open_archive(path)

    for module in ("sources.archive_file", "mail.archive.compression"):
        monkeypatch.setattr(f"mail_assets.{module}.open_archive", count)
    (world.folder() / f"{HARBOR}.{MARCH}.mbox.gz").write_bytes(gzip.compress(mail("a")))
    assert world.archives().counts["found"] == 1
    assert opened == ["archive.part"]

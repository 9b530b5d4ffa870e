"""Archives are stored as fetched; the loss of messages is refused or recorded."""

import gzip
import re
from pathlib import Path
from typing import BinaryIO, NamedTuple

import pytest

from mail_assets.mail.archive.compression import open_archive
from mail_assets.mail.archive.mbox import identify
from mail_assets.month import ListMonth
from mail_assets.sources.source import SourceError
from mail_assets.steps.fetch_archive import FetchOptions, fetch_archive, sweep_former_archives
from mail_assets.steps.unchanged_months import confirm_archive
from mail_assets.tables.health import find_behind
from mail_assets.tables.mbox_archives import archived_months
from mail_assets.workspace import StepError
from mail_assets_tests.sources.web import Reply, serve, template
from mail_assets_tests.world import APRIL, HARBOR, MARCH, MAY, PIER, World, mail

OTHER_FROM = "From other@example.org Tue Mar  5 10:11:12 2024"


def mails(count: int) -> list[bytes]:
    return [mail(f"m{number}") for number in range(count)]


def test_archive_is_kept_as_its_source_has_it(world: World) -> None:
    path = world.archive(MARCH, *mails(3))
    outcome = world.archives()
    [(key, sha256)] = world.rows("mbox_archives", "object_key, sha256")
    assert key == f"archives/{HARBOR}/{MARCH}/{sha256[:16]}.mbox"
    assert (world.home / "store" / key).read_bytes() == path.read_bytes()
    assert outcome.changed
    assert outcome.counts["found"] == 3
    assert outcome.counts["bytes"] == path.stat().st_size
    assert outcome.counts["fetched"] == 1


def test_compressed_archive_has_its_suffix_in_the_store(world: World) -> None:
    (world.folder() / f"{HARBOR}.{MARCH}.mbox.gz").write_bytes(gzip.compress(mail("a")))
    assert world.archives().counts["found"] == 1
    [(key,)] = world.rows("mbox_archives", "object_key")
    assert key.endswith(".mbox.gz")


def test_other_from_lines_do_not_change_the_archive(world: World) -> None:
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


def test_month_without_archive_is_empty_with_a_note(world: World) -> None:
    world.archive(MARCH, *mails(1))
    outcome = world.archives(APRIL)
    assert outcome.note == "the source has no archive for this month"
    assert outcome.counts["found"] == outcome.counts["bytes"] == 0
    assert world.rows("mbox_archives", "month, object_key") == [(APRIL, None)]
    before = world.writes()
    assert not world.archives(APRIL).changed
    assert world.writes() == before


def test_archive_that_comes_late_is_fetched(world: World) -> None:
    world.archives()
    world.archive(MARCH, *mails(2))
    outcome = world.archives()
    assert outcome.changed
    assert not outcome.note
    assert outcome.counts["found"] == 2


class Loss(NamedTuple):
    """Number of messages before and after; None: the archive is gone."""

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
def test_loss_beyond_one_message_and_3_percent_is_refused(world: World, loss: Loss) -> None:
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


def test_superseded_file_stays_while_messages_need_it(world: World) -> None:
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


def test_file_that_the_store_lost_is_fetched_again(world: World) -> None:
    world.archive(MARCH, *mails(2))
    world.archives()
    [key] = world.store.keys("archives/")
    world.store.delete(key)
    outcome = world.archives()
    assert outcome.counts["fetched"] == 1
    assert outcome.changed
    assert [*world.store.keys("archives/")] == [key]


def test_another_dialect_reads_the_same_bytes_again(world: World) -> None:
    world.dialect = "mboxrd"
    world.archive(MARCH, mail("a", ">From here on the text is quoted."))
    before = world.archives()
    world.dialect = "plain"
    after = world.archives()
    assert after.counts["fetched"] == 0, "the kept file is read again"
    assert after.digest != before.digest
    assert world.archives().counts["fetched"] == 0


def test_other_quoting_is_stored_when_the_dialect_differs(world: World) -> None:
    world.dialect = "mboxo"
    world.archive(MARCH, mail("a", ">From here on the text is easy."))
    world.archives()
    world.archive(MARCH, mail("a", "From here on the text is easy."), at=1)
    assert not world.archives().changed, "as mboxo both say the same"
    world.dialect = "plain"
    world.archives()
    world.messages()
    assert world.rows("messages", "body_text") == [("From here on the text is easy.\n",)]


def test_fetched_page_is_refused_and_changes_nothing(world: World) -> None:
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


def test_dialect_is_found_when_it_is_not_set(world: World) -> None:
    world.dialect = None
    world.archive(MARCH, PIPERMAIL)
    world.archives()
    world.messages()
    assert world.rows("mbox_archives", "dialect, found_dialect") == [("pipermail", "pipermail")]
    assert world.rows("messages", "from_name, from_email") == [("Jo Doe", "jo@example.org")]


def test_dialect_that_is_set_is_kept_with_the_found_one(world: World) -> None:
    world.dialect = "mboxrd"
    world.archive(MARCH, PIPERMAIL)
    world.archives()
    assert world.rows("mbox_archives", "dialect, found_dialect") == [("mboxrd", "pipermail")]


def test_archive_of_a_former_version_is_examined_again(world: World) -> None:
    world.archive(MARCH, PIPERMAIL)
    world.archives()
    with world.connect() as connection:
        connection.execute("update mbox_archives set found_dialect = ''")
        connection.execute("update partitions set inputs = 'a plain' where asset = 'mbox_archives'")
    world.archives()
    assert world.rows("mbox_archives", "found_dialect") == [("pipermail",)]


def test_fetched_file_is_decompressed_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []

    def count(path: Path) -> BinaryIO:
        opened.append(path.name)
        return open_archive(path)

    for module in ("sources.archive_file", "mail.archive.compression"):
        monkeypatch.setattr(f"mail_assets.{module}.open_archive", count)
    (world.folder() / f"{HARBOR}.{MARCH}.mbox.gz").write_bytes(gzip.compress(mail("a")))
    assert world.archives().counts["found"] == 1
    assert opened == ["archive.part"]


MONTH = ListMonth("hackers", "2024-03")
OPTIONS = FetchOptions("plain")
NEWER = (("Last-Modified", "Mon, 01 Apr 2024 00:00:00 GMT"),)
OLDER = (("Last-Modified", "Fri, 01 Mar 2024 00:00:00 GMT"),)


def test_older_file_at_another_url_replaces_the_kept_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with serve() as server, world.workspace() as workspace:
        server.on("/wrong.202403", Reply(mail("a"), headers=NEWER))
        older = Reply(status=304), Reply(mail("b"), headers=OLDER)
        url = server.on("/right.202403", *older, *older, Reply(status=304))
        fetch_archive(workspace, MONTH, template(server, "/wrong.{yyyymm}"), OPTIONS)
        right = template(server, "/right.{yyyymm}")
        assert not confirm_archive(workspace, MONTH, right, OPTIONS)
        assert fetch_archive(workspace, MONTH, right, OPTIONS).changed
        assert world.rows("mbox_archives", "source") == [(url,)]
        [key] = world.store.keys("archives/")
        assert (world.home / "store" / key).read_bytes() == mail("b")
        asked = len(server.seen)
        assert confirm_archive(workspace, MONTH, right, OPTIONS)
        assert not fetch_archive(workspace, MONTH, right, OPTIONS).changed
        assert len(server.seen) == asked + 2, "once each: the version is that of this URL"


def test_same_file_at_another_url_is_kept_and_recorded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with serve() as server, world.workspace() as workspace:
        tag = (("ETag", '"1"'),)
        for path in ("/old.202403", "/new.202403"):
            server.on(path, Reply(mail("a"), headers=tag))
        fetch_archive(workspace, MONTH, template(server, "/old.{yyyymm}"), OPTIONS)
        files = world.file_times()
        new = template(server, "/new.{yyyymm}")
        assert confirm_archive(workspace, MONTH, new, OPTIONS)
        assert not fetch_archive(workspace, MONTH, new, OPTIONS).changed
        assert world.file_times() == files
        assert world.rows("mbox_archives", "source") == [(f"{server.base}/new.202403",)]


def numbered(*names: object) -> list[bytes]:
    return [mail(f"m{name}") for name in names]


def list_mail(name: str, list_id: str) -> bytes:
    return mail(name).replace(b"Subject:", f"List-Id: Dev <{list_id}>\nSubject:".encode(), 1)


def removed(world: World) -> list[str]:
    return [one for (one,) in world.rows("removed_upstream", "message_id")]


def expire(world: World) -> None:
    with world.connect() as connection:
        connection.execute("update former_archives set kept_until = now()")


def test_messages_replaced_by_as_many_others_count_as_lost(world: World) -> None:
    world.archive(MARCH, *numbered(*range(200)))
    world.archives()
    before = world.writes()
    world.archive(MARCH, *numbered(*range(200, 400)), at=1)
    with pytest.raises(StepError, match=r"held 200 messages and now has 200 \(200 lost, 100%\)"):
        world.archives()
    assert world.writes() == before
    assert world.archives(allow_loss=True).counts["vanished"] == 200


@pytest.mark.parametrize("change", ["rendering", "order", "copies"])
def test_another_rendering_of_the_messages_loses_none(world: World, change: str) -> None:
    letters = numbered(*range(20))
    world.archive(MARCH, *letters)
    world.archives()
    again = {
        "rendering": [one.replace(b"about", b"About").replace(b": <", b":\n <") for one in letters],
        "order": letters[::-1],
        "copies": [*letters, *letters],
    }[change]
    world.archive(MARCH, *again, at=1)
    assert world.archives().counts["vanished"] == 0
    assert removed(world) == []


def test_message_without_id_is_known_by_sender_date_subject() -> None:
    header = b"From: Jo <jo@example.org>\nDate: Mon, 5 Jan 2026\nSubject: tides\n"
    digest, message_id = identify(header)
    assert message_id == ""
    assert identify(header.replace(b": ", b":   ") + b"X-Other: 1\n") == (digest, "")
    assert identify(header.replace(b"tides", b"ebb")) != (digest, "")


def test_vanished_message_is_recorded_until_it_comes_back(world: World) -> None:
    world.keep_days = 30
    world.archive(MARCH, *numbered(1, 2, 3))
    first = world.archives()
    [former] = world.store.keys("archives/")
    world.archive(MARCH, *numbered(1, 3), at=1)
    assert world.archives().counts["vanished"] == 1
    assert world.rows("removed_upstream", "list, month, message_id, former_key") == [
        (HARBOR, MARCH, "m2@example.org", former)
    ]
    world.archives()
    assert removed(world) == ["m2@example.org"]
    world.archive(MARCH, *numbered(1, 2, 3), at=2)
    assert world.archives().digest == first.digest
    assert removed(world) == []


def test_vanished_damaged_id_is_recorded_as_it_was_stored(world: World) -> None:
    damaged = mail("m1").replace(b"m1@", b"m\x001@")
    long = mail("m2").replace(b"<m2@", b"<" + 501 * b"m" + b"@")
    world.archive(MARCH, damaged, long, *numbered(*range(3, 8)))
    world.archives()
    world.messages()
    stored = {one for (one,) in world.rows("messages", "message_id")}
    world.archive(MARCH, *numbered(*range(3, 8)), at=1)
    world.archives(allow_loss=True)
    world.messages()
    kept = {one for (one,) in world.rows("messages", "message_id")}
    assert {*removed(world)} == stored - kept
    assert len(stored - kept) == 2


def test_damaged_list_id_is_accepted(world: World) -> None:
    world.archive(MARCH, list_mail("m1", "dev\0.example.org"))
    world.archives()
    assert world.rows("mbox_archives", "list_id") == [("dev.example.org",)]


def test_vanished_archive_leaves_all_its_messages_recorded(world: World) -> None:
    world.keep_days = 30
    path = world.archive(MARCH, *numbered(1, 2))
    world.archives()
    path.unlink()
    with pytest.raises(StepError, match=r"has vanished \(2 lost, 100%\)"):
        world.archives()
    world.archives(allow_loss=True)
    assert removed(world) == ["m1@example.org", "m2@example.org"]
    assert len([*world.store.keys("archives/")]) == 1


def test_vanished_month_is_behind_until_all_of_it_is_deleted(world: World) -> None:
    for month in (MARCH, APRIL):
        world.load(mail(month), month=month, last="vectors")
    (world.folder() / f"{HARBOR}.{APRIL}.mbox").unlink()
    world.archives(APRIL, allow_loss=True)
    march, april = ListMonth(HARBOR, MARCH), ListMonth(HARBOR, APRIL)
    with world.connect() as connection:
        for step in ("messages", "words", "patches", "chunks", "embeddings", "vectors"):
            assert find_behind(connection) == {april: step}
            assert archived_months(connection, HARBOR) == [march, april]
            getattr(world, step)(APRIL)
        assert find_behind(connection) == {}
        assert archived_months(connection, HARBOR) == [march]
    assert world.rows("messages", "month") == [(MARCH,)]


def test_former_archive_is_kept_for_its_days(world: World) -> None:
    world.keep_days = 30
    for at in range(3):
        world.archive(MARCH, *numbered(*range(at + 1)), at=at)
        world.archives()
    assert len([*world.store.keys("archives/")]) == 3
    with world.workspace() as workspace:
        assert sweep_former_archives(workspace) == 0
        expire(world)
        assert sweep_former_archives(workspace) == 2
        assert sweep_former_archives(workspace) == 0
    [current] = world.store.keys("archives/")
    assert world.rows("mbox_archives", "object_key") == [(current,)]
    assert world.rows("former_archives") == []


def test_next_fetch_deletes_expired_former_archives(world: World) -> None:
    world.keep_days = 30
    for at in range(2):
        world.archive(MARCH, *numbered(*range(at + 1)), at=at)
        world.archives()
    expire(world)
    world.archives()
    assert len([*world.store.keys("archives/")]) == 1


def test_archive_of_another_list_is_refused_by_name(world: World) -> None:
    for month in (MARCH, APRIL):
        world.archive(month, list_mail("a", "harbor.lists.example.org"))
        world.archives(month)
    world.archive(MAY, list_mail("b", "quay.lists.example.org"))
    said = "of the list quay.lists.example.org; other months of harbor are of harbor.lists"
    with pytest.raises(StepError, match=re.escape(said)):
        world.archives(MAY)
    assert world.rows("mbox_archives", "month") == [(MARCH,), (APRIL,)]
    assert world.archives(MAY, allow_loss=True).counts["found"] == 1


def test_renamed_list_is_usual_after_two_accepted_months(world: World) -> None:
    for month in ("2023-10", "2023-11", "2023-12", MARCH):
        world.archive(month, list_mail("a", "harbor.lists.example.org"))
        world.archives(month)
    for month in (APRIL, MAY):
        world.archive(month, list_mail("b", "quay.lists.example.org"))
        with pytest.raises(StepError, match="of the list quay"):
            world.archives(month)
        world.archives(month, allow_loss=True)
        world.archive(month, *(list_mail(x, "quay.lists.example.org") for x in "bc"), at=1)
        assert world.archives(month).counts["found"] == 2
    world.archive("2024-06", list_mail("d", "quay.lists.example.org"))
    assert world.archives("2024-06").counts["found"] == 1


def test_list_may_move_to_another_host(world: World) -> None:
    for month in (MARCH, APRIL):
        world.archive(month, list_mail("a", "harbor.lists.example.org"))
        world.archives(month)
    world.archive(MAY, list_mail("b", "harbor.example.net"))
    assert world.archives(MAY).counts["found"] == 1
    world.archive(MAY, list_mail("c", "pier.example.net"), list_name=PIER)
    assert world.archives(MAY, PIER).counts["found"] == 1

"""Lost messages are refused or recorded, and their former archive is kept for some days."""

import re

import pytest

from mail_assets.mail.archive.mbox import identify
from mail_assets.month import ListMonth
from mail_assets.steps.fetch_archive import sweep_former_archives
from mail_assets.tables.health import find_behind
from mail_assets.tables.mbox_archives import archived_months
from mail_assets.workspace import StepError
from mail_assets_tests.world import APRIL, HARBOR, MARCH, MAY, PIER, World, mail


def mails(*names: object) -> list[bytes]:
    return [mail(f"m{name}") for name in names]


def list_mail(name: str, list_id: str) -> bytes:
    return mail(name).replace(b"Subject:", f"List-Id: Dev <{list_id}>\nSubject:".encode(), 1)


def removed(world: World) -> list[str]:
    return [one for (one,) in world.rows("removed_upstream", "message_id")]


def expire(world: World) -> None:
    with world.connect() as connection:
        connection.execute("update former_archives set kept_until = now()")


def test_messages_replaced_by_as_many_others_count_as_lost(world: World) -> None:
    world.archive(MARCH, *mails(*range(200)))
    world.archives()
    before = world.writes()
    world.archive(MARCH, *mails(*range(200, 400)), at=1)
    with pytest.raises(StepError, match=r"held 200 messages and now has 200 \(200 lost, 100%\)"):
        world.archives()
    assert world.writes() == before
    assert world.archives(allow_loss=True).counts["vanished"] == 200


@pytest.mark.parametrize("change", ["rendering", "order", "copies"])
def test_another_rendering_of_the_messages_loses_none(world: World, change: str) -> None:
    letters = mails(*range(20))
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
    world.archive(MARCH, *mails(1, 2, 3))
    first = world.archives()
    [former] = world.store.keys("archives/")
    world.archive(MARCH, *mails(1, 3), at=1)
    assert world.archives().counts["vanished"] == 1
    assert world.rows("removed_upstream", "list, month, message_id, former_key") == [
        (HARBOR, MARCH, "m2@example.org", former)
    ]
    world.archives()
    assert removed(world) == ["m2@example.org"]
    world.archive(MARCH, *mails(1, 2, 3), at=2)
    assert world.archives().digest == first.digest
    assert removed(world) == []


def test_vanished_damaged_id_is_recorded_as_it_was_stored(world: World) -> None:
    damaged = mail("m1").replace(b"m1@", b"m\x001@")
    long = mail("m2").replace(b"<m2@", b"<" + 501 * b"m" + b"@")
    world.archive(MARCH, damaged, long, *mails(*range(3, 8)))
    world.archives()
    world.messages()
    stored = {one for (one,) in world.rows("messages", "message_id")}
    world.archive(MARCH, *mails(*range(3, 8)), at=1)
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
    path = world.archive(MARCH, *mails(1, 2))
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
        world.archive(MARCH, *mails(*range(at + 1)), at=at)
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
        world.archive(MARCH, *mails(*range(at + 1)), at=at)
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

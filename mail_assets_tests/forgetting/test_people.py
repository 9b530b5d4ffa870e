"""Forgotten people leave the address columns of other mail, now and at later loads."""

from collections.abc import Collection

from mail_assets.forgetting.forget import ForgetReport, ForgetRequest, count_mentions, find_matches
from mail_assets.mail.message.forgotten import NOBODY
from mail_assets.month import ListMonth
from mail_assets.tables.removals import withdraw_removals
from mail_assets_tests.kept_worlds import kept_world
from mail_assets_tests.world import APRIL, DIGESTS, HARBOR, MARCH, World, mail

EVE = "eve@example.net"
TO_EVE = mail(
    "to", headers="To: Ann <ann@example.org>, Eve Roe <Eve@Example.net>\nCc: bo@x.example"
)
CC_EVE = mail("cc", headers="Cc: eve@example.net\nTo: harbor@lists.example.org")
REPLY = mail("reply", headers='Reply-To: "eve@example.net (Eve)" <harbor@lists.example.org>')
BIG_EVE = mail("big", headers="To: Big Eve <big.eve@example.net>")
QUOTE = mail("quote", "On Monday Eve <eve@example.net> wrote:\n> Tides.\n\nYes.")
ONE = ForgetRequest([], [EVE], "asked to", "the postmaster")


def fill_world(made: World) -> None:
    made.archive(MARCH, TO_EVE, CC_EVE, REPLY, BIG_EVE, QUOTE, mail("hers", sender=EVE))
    made.archive(APRIL, mail("other"))
    made.fill(MARCH, APRIL)


world = kept_world(fill_world)


def forget(world: World, request: ForgetRequest = ONE) -> ForgetReport:
    return world.forget(request)


def addresses(world: World) -> dict[str, Collection[str]]:
    rows = world.rows("messages", "message_id, reply_to || recipients || cc")
    return {message_id.partition("@")[0]: entries for message_id, entries in rows}


AFTER = {
    "to": ["Ann <ann@example.org>", NOBODY.email, "bo@x.example"],
    "cc": ["harbor@lists.example.org", NOBODY.email],
    "reply": [NOBODY.email],
    "big": ["Big Eve <big.eve@example.net>"],
    "quote": [],
    "other": [],
}


def test_address_is_replaced_now_and_at_every_later_load(world: World) -> None:
    report = forget(world)
    assert (len(report.copies), report.people) == (1, 3)
    assert addresses(world) == AFTER
    world.archive(MARCH, TO_EVE, CC_EVE, REPLY, BIG_EVE, QUOTE, mail("hers", sender=EVE), at=1)
    world.archive(APRIL, mail("other"), mail("late", headers=f"To: Eve <{EVE}>"), at=1)
    for month in (MARCH, APRIL):
        world.chain(month)
    assert addresses(world) == {**AFTER, "late": [NOBODY.email]}


def test_load_without_former_rows_makes_the_same_rows(world: World) -> None:
    forget(world)
    left = addresses(world)
    with world.connect() as connection:
        connection.execute("truncate messages, partitions, removed_messages")
    for month in (MARCH, APRIL):
        world.messages(month)
    assert addresses(world) == left


def test_other_mail_is_untouched(world: World) -> None:
    where = "message_id in ('big@example.org', 'quote@example.org', 'other@example.org')"
    before = world.rows("messages", "*, ctid::text, xmin::text", where)
    forget(world)
    assert world.rows("messages", "*, ctid::text, xmin::text", where) == before


def test_remembered_person_is_shown_after_a_backfill(world: World) -> None:
    before = addresses(world)
    forget(world)
    with world.connect() as connection:
        count, months = withdraw_removals(connection, [DIGESTS.of_sender(EVE)])
    assert (count, months) == (1, [ListMonth(HARBOR, MARCH)])
    for month in (MARCH, APRIL):
        world.chain(month)
    assert addresses(world) == before


def test_month_that_only_names_a_person_is_loaded_again(world: World) -> None:
    world.load(
        mail("other"), mail("named", headers=f"To: {EVE}"), at=1, month=APRIL, last="vectors"
    )
    before = addresses(world)
    forget(world)
    with world.connect() as connection:
        _, months = withdraw_removals(connection, [DIGESTS.of_sender(EVE)])
    assert months == [ListMonth(HARBOR, MARCH), ListMonth(HARBOR, APRIL)]
    for month in (MARCH, APRIL):
        world.chain(month)
    assert addresses(world) == before


def test_author_is_known_by_the_name_under_a_list_address(world: World) -> None:
    munged = mail("munged", "Tides by proxy.").replace(
        b"From: Ann <ann@example.org>", b"From: eve@example.net via harbor <harbor@x.example>"
    )
    world.load(mail("other"), munged, at=1, month=APRIL, last="vectors")
    report = forget(world)
    assert sorted(copy.message_id for copy in report.copies) == [
        "hers@example.org",
        "munged@example.org",
    ]
    world.load(mail("other"), munged, mail("more"), at=2, month=APRIL, last="vectors")
    ids = world.rows("messages", "message_id", f"month = '{APRIL}'")
    assert ids == [("more@example.org",), ("other@example.org",)]


def test_mentions_in_text_stay_and_are_counted(world: World) -> None:
    with world.connect() as connection:
        copies = find_matches(connection, ONE)
        assert count_mentions(connection, ONE, copies) == (3, 1)
        only_ids = ForgetRequest(["quote@example.org"], [], "", "")
        assert count_mentions(connection, only_ids, []) == (0, 0)
    forget(world)
    with world.connect() as connection:
        assert count_mentions(connection, ONE, []) == (0, 1)

"""The arrival of a message: by what its sender cannot write, and stable when it is loaded again."""

import pytest

from mail_assets_tests.world import World, mail

MADE_UP = "From nobody Mon Mar  4 1{}:00:00 2024"
NO_TIME = "From mboxrd@z Thu Jan  1 00:00:00 1970"
HOPS = (
    "Received: from x by list.example.org; Tue, 5 Mar 2024 09:00:00 +0000\n"
    "Received: from y by x; Fri, 1 Mar 2024 09:00:00 +0000"
)
ARRIVAL = "body_text, arrival_source, to_char(arrived_at at time zone 'UTC', 'MM-DD HH24:MI:SS.US')"


def load(world: World, at: int, *mails: bytes) -> dict[str, tuple[str, str]]:
    world.load(
        *mails,
        mail("hops", "hops", headers=HOPS, from_line=NO_TIME),
        mail("made-up", "made up", from_line=MADE_UP.format(at)),
        mail("no-time", "no time", from_line=NO_TIME),
        mail("no-time", "another text", from_line=NO_TIME),
        at=at,
    )
    return {body.strip(): (source, at) for body, source, at in world.rows("messages", ARRIVAL)}


def test_arrival_stays_when_a_month_is_loaded_again(world: World) -> None:
    first = load(world, 0)
    assert first["hops"] == ("received", "03-05 09:00:00.000000")
    assert first["made up"] == ("from_line", "03-04 10:00:00.000000")
    assert first["no time"][0] == first["another text"][0] == "loaded"
    again = load(world, 5, mail("more"), mail("no-time", "a third text", from_line=NO_TIME))
    assert {text: again[text] for text in first} == first
    assert again["a third text"] > first["no time"]


def hop(day: int) -> str:
    return f"Received: from x by list.example.org; {day} Mar 2024 09:00:00 +0000"


@pytest.mark.parametrize("line", [
    "From - Sat Nov 21 10:00:00 2026", "From ???@??? Sat Nov 21 10:00:00 2026",
    "From MAILER-DAEMON Sat Nov 21 10:00:00 2026", "From MAILER-DAEMON Thu Jan 01 1970",
    "From MAILER-DAEMON", "From nobody Mon Sep 17 00:00:00 2001",
])  # fmt: skip
def test_first_text_is_by_received_where_lines_are_one(world: World, line: str) -> None:
    first = mail("x", "the genuine text", headers=hop(5), from_line=line)
    world.load(first)  # one line alone may be of its message
    world.load(mail("x", "a forged text", headers=hop(7), from_line=line), first, at=1)
    rows = world.rows("messages", f"{ARRIVAL}, message_id")
    assert [(body.strip(), *rest) for body, *rest, _ in rows] == [
        ("a forged text", "received", "03-07 09:00:00.000000"),
        ("the genuine text", "received", "03-05 09:00:00.000000"),
    ]

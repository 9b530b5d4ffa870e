"""What must stay out is known by its digest, and answers name it by a stand-in."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message.forgotten import (
    Forgotten,
    is_stand_in,
    message_digest,
    sender_digest,
    stand_in,
)
from mail_assets.mail.message.parse import parse_message
from mail_assets_tests.mail.mails import raw_message

MESSAGE = parse_message(
    raw_message(b"Message-ID: <1@x>\nFrom: Jo <Jo@Example.org>\n\nHello.\n"),
    month="2024-03",
    dialect="plain",
)
ONE, JO = message_digest("1@x"), sender_digest("jo@example.org")


@pytest.mark.parametrize(
    ("forgotten", "removal"),
    [
        (Forgotten(), None),
        (Forgotten(messages={message_digest("2@x")}), None),
        (Forgotten(senders={sender_digest("ann@example.org")}), None),
        (Forgotten(messages={ONE}), ONE),
        (Forgotten(senders={JO}), JO),
        (Forgotten({ONE}, {JO}), ONE),
        (Forgotten({JO}, {ONE}), None),
        (Forgotten(ids={ONE}), None),
    ],
)
def test_a_message_stays_out_by_its_id_or_its_sender(
    forgotten: Forgotten, removal: bytes | None
) -> None:
    assert forgotten.removal_of(MESSAGE) == removal


def test_the_case_of_an_address_does_not_count_and_that_of_an_id_does() -> None:
    assert sender_digest(" JO@example.ORG ") == JO
    assert message_digest("1@X") != ONE
    shouting = replace(MESSAGE, message_id="1@X")
    assert Forgotten(messages={ONE}).removal_of(shouting) is None


def test_an_id_and_an_address_of_the_same_letters_differ() -> None:
    assert message_digest("a@x") != sender_digest("a@x")


@given(st.lists(st.text(min_size=1, max_size=8)), st.sets(st.text(min_size=1, max_size=8)))
@settings(deadline=None, max_examples=50)
def test_hiding_keeps_the_order_and_what_is_not_forgotten(ids: list[str], gone: set[str]) -> None:
    hidden = Forgotten(ids={*map(message_digest, gone)}).hide(ids)
    assert len(hidden) == len(ids)
    for x, shown in zip(ids, hidden, strict=True):
        assert shown == (stand_in(message_digest(x)) if x in gone else x)
        assert is_stand_in(shown) == (x in gone)

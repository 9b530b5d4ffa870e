"""Forgotten messages and people are recognised by digests and named by placeholders."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message.addresses import Address
from mail_assets.mail.message.forgotten import NOBODY, Digests, Forgotten, find_addresses
from mail_assets.mail.message.ids import is_placeholder, make_placeholder
from mail_assets.mail.message.parse import parse_message
from mail_assets_tests.mail.mails import raw_message

MESSAGE = parse_message(
    raw_message(b"Message-ID: <1@x>\nFrom: Jo <Jo@Example.org>\n\nHello.\n"),
    month="2024-03",
    dialect="plain",
)
DIGESTS = Digests(b"key")
ONE, JO = DIGESTS.of_message("1@x"), DIGESTS.of_sender("jo@example.org")


@pytest.mark.parametrize(("forgotten", "removal"), [
    (Forgotten(), None),
    (Forgotten(messages={DIGESTS.of_message("2@x")}, digests=DIGESTS), None),
    (Forgotten(senders={DIGESTS.of_sender("ann@example.org")}, digests=DIGESTS), None),
    (Forgotten(messages={ONE}, digests=DIGESTS), ONE),
    (Forgotten(senders={JO}, digests=DIGESTS), JO),
    (Forgotten({ONE}, {JO}, digests=DIGESTS), ONE),
    (Forgotten({JO}, {ONE}, digests=DIGESTS), None),
    (Forgotten(ids={ONE}, digests=DIGESTS), None),
    (Forgotten({ONE}, {JO}, {ONE}, Digests(b"another key")), None),
])  # fmt: skip
def test_message_stays_out_by_its_id_or_its_sender(
    forgotten: Forgotten, removal: bytes | None
) -> None:
    message_id, author = MESSAGE.message_id, (MESSAGE.from_name, MESSAGE.from_email)
    assert forgotten.removal_of(message_id, *author) == removal


def test_digest_ignores_case_of_addresses_but_not_of_ids() -> None:
    assert DIGESTS.of_sender(" JO@example.ORG ") == JO
    assert DIGESTS.of_message("1@X") != ONE
    forgotten = Forgotten(messages={ONE}, digests=DIGESTS)
    assert forgotten.removal_of("1@X", "Jo", "jo@example.org") is None


def test_id_and_an_address_of_the_same_letters_differ() -> None:
    assert DIGESTS.of_message("a@x") != DIGESTS.of_sender("a@x")


@given(st.lists(st.text(min_size=1, max_size=8)), st.sets(st.text(min_size=1, max_size=8)))
@settings(max_examples=50)
def test_hiding_keeps_order_and_other_ids(ids: list[str], gone: set[str]) -> None:
    hidden = Forgotten(ids={*map(DIGESTS.of_message, gone)}, digests=DIGESTS).hide_ids(ids)
    assert len(hidden) == len(ids)
    for x, shown in zip(ids, hidden, strict=True):
        assert shown == (make_placeholder(DIGESTS.of_message(x)) if x in gone else x)
        assert is_placeholder(shown) == (x in gone)


def test_digest_cannot_be_made_without_the_key() -> None:
    guess = hashlib.sha256(b"sender jo@example.org").digest()
    assert guess not in {JO, Digests(b"another key").of_sender("jo@example.org")}
    assert "key" not in repr(DIGESTS).replace("Digests", "")


FORGOTTEN_JO = Forgotten(senders={JO}, digests=DIGESTS)


@pytest.mark.parametrize(("name", "email", "is_jo"), [
    ("Jo", "jo@example.org", True),
    ("", "JO@example.org", True),
    ("jo@example.org via harbor", "harbor@lists.example.org", True),
    ("Jo Roe (Jo@Example.org)", "noreply@example.com", True),
    ('"Jo" <jo@example.org>', "harbor@lists.example.org", True),
    ("Jo", "jo@example.com", False),
    ("Jo", "big.jo@example.org", False),
    ("big.jo@example.org", "ann@example.org", False),
    ("jo@example.org.uk", "ann@example.org", False),
    ("Jo Roe", "ann@example.org", False),
])  # fmt: skip
def test_author_is_found_by_address_or_one_in_the_name(name: str, email: str, is_jo: bool) -> None:
    assert FORGOTTEN_JO.removal_of_author(name, email) == (JO if is_jo else None)


def test_forgotten_person_loses_name_and_address() -> None:
    ann = Address("Ann", "ann@example.org")
    shown = MESSAGE._replace(
        reply_to=(Address("Jo", "jo@example.org"),),
        to=(ann, Address("jo@example.org", "harbor@example.org")),
        cc=(Address("", "JO@EXAMPLE.ORG"), ann),
    )
    hidden = FORGOTTEN_JO.hide(shown)
    assert (hidden.reply_to, hidden.to, hidden.cc) == ((NOBODY,), (ann, NOBODY), (NOBODY, ann))
    assert hidden._replace(reply_to=shown.reply_to, to=shown.to, cc=shown.cc) == shown


def test_message_is_unchanged_if_nothing_is_forgotten() -> None:
    assert Forgotten().hide(MESSAGE) is MESSAGE


@given(st.text(alphabet="jo@.x <>()\"',;:[]\n\u00a0", max_size=30))
def test_text_with_an_at_sign_has_a_possible_address(text: str) -> None:
    assert sum(word.count("@") for word in find_addresses(text)) <= text.count("@")
    assert bool(find_addresses(text)) == ("@" in text)

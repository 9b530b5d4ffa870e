"""Message ids, well-formed or not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message.ids import (
    MAX_ID,
    MAX_REFERENCES,
    generate_message_id,
    parse_in_reply_to,
    parse_message_id,
    parse_parents,
    parse_references,
)


@pytest.mark.parametrize(("values", "expected"), [
    (["<1@x>"], "1@x"),
    (["<AbC@X.org>"], "AbC@X.org"),
    (["<1@x> (added by postmaster@y)"], "1@x"),
    (["(comment) <1@x>"], "1@x"),
    (["<1@x> <2@x>"], "1@x"),
    (["<a b\tc@x>"], "abc@x"),
    (['<"c=us;a= ;p=foo;l=BAR 1"@x>'], '"c=us;a=;p=foo;l=BAR1"@x'),
    (["<no-at>"], "no-at"),
    (["(added by <relay@y>) <1@x>"], "1@x"),
    (["<\u202e1@\u200bx\u2028>"], "1@x"),
    (["\u200b1@x"], "1@x"),
    (["<@>", "<2@x>"], "2@x"),
    (["bare@x"], "bare@x"),
    (["bare"], "bare"),
    (["<open@x"], "open@x"),
    (["PM200011:12:45 AM"], None),
    (["<>"], None),
    (["< >"], None),
    ([""], None),
    ([], None),
    (["", "<2@x>"], "2@x"),
    (["<1@x>", "<2@x>"], "1@x"),
])  # fmt: skip
def test_first_id_of_the_first_field_that_has_one(values: list[str], expected: str | None) -> None:
    assert parse_message_id(values) == expected


def test_generated_id_depends_on_all_parts_only() -> None:
    made = generate_message_id("a", "b", "c")
    assert made == generate_message_id("a", "b", "c")
    assert made.endswith("@generated.invalid")
    assert len({made, generate_message_id("ab", "", "c"), generate_message_id("a", "b", "d")}) == 3


@pytest.mark.parametrize(("value", "expected"), [
    ("<1@x>", ("1@x",)),
    ("CA+1@mail.example", ("CA+1@mail.example",)),
    ("<1@x> <2@x>", ("1@x", "2@x")),
    ("<1@x> <1@x>", ("1@x",)),
    ("<lo\n ng@x>", ("long@x",)),
    ('"Jo"\'s message of "Wed, 4 Sep 2002"', ()),
    ('<1@x> (Jo\'s message of "Sat, 11 Jan")', ("1@x",)),
    ('<1@x> from "Jo" at Nov 3, 97 05:47:43 pm', ("1@x",)),
    ("<1@x>; from jo@example.org on Wed, Mar 12", ("1@x",)),
    ('Your message of "Thu, 20 Feb" <1@x>', ("1@x",)),
    ('Message from Jo Doe <jo@example.org> of "Sun, 05 Jan" <1@x>', ("1@x",)),
    ('Message from Jo Doe <jo@example.org> of "Sun, 05 Jan"', ()),
    ('Jo Doe <jo@example.org>\'s message of "Sun, 05 Jan"', ()),
    ('Jo Doe <jo@example.org>\'s message of "Sun, 05 Jan" <1@x>', ("1@x",)),
    ("<y>", ()),
    ("<n>", ()),
    ("not-an-id", ()),
    ("", ()),
])  # fmt: skip
def test_in_reply_to_gives_ids_and_never_an_author_s_address(
    value: str, expected: tuple[str, ...]
) -> None:
    assert parse_in_reply_to([value]) == expected


@pytest.mark.parametrize(("value", "expected"), [
    ("jo@example.org", ()),
    ("<Jo@Example.org>", ()),
    ('<jo@example.org> of "Fri, 5 Dec" <1@x>', ("1@x",)),
    ("<200103@example.org>", ("200103@example.org",)),
    ("<1@x> <ann@example.org> <2@x>", ("1@x", "2@x")),
])  # fmt: skip
def test_addresses_of_a_message_are_no_ids(value: str, expected: tuple[str, ...]) -> None:
    people = {"jo@example.org", "ann@example.org"}
    assert parse_in_reply_to([value], people) == expected
    assert parse_references([value], people) == expected


def test_several_in_reply_to_fields_are_read_together() -> None:
    assert parse_in_reply_to(["<1@x>", "2@x", "<1@x>"]) == ("1@x", "2@x")


@pytest.mark.parametrize(("values", "expected"), [
    (["<1@x> <2@x>"], ("1@x", "2@x")),
    (["<1@x>\n\t<2@x> <1@x>"], ("1@x", "2@x")),
    (["<1@x>", "<2@x>"], ("1@x", "2@x")),
    (["<spl\n it@x><2@x>"], ("split@x", "2@x")),
    (["<broken <2@x>"], ("2@x",)),
    (["<1@x>,<2@x>"], ("1@x", "2@x")),
    (["1@x 2@x, 3@x"], ("1@x", "2@x", "3@x")),
    (["no ids here"], ()),
    ([], ()),
])  # fmt: skip
def test_references_are_repaired(values: list[str], expected: tuple[str, ...]) -> None:
    assert parse_references(values) == expected


def test_of_too_many_references_the_first_and_the_last_stay() -> None:
    found = parse_references([" ".join(f"<{n}@x>" for n in range(5_000))])
    assert len(found) == MAX_REFERENCES
    assert (found[0], found[1], found[-1]) == ("0@x", f"{5_001 - MAX_REFERENCES}@x", "4999@x")


def test_overlong_id_is_equal_in_all_fields() -> None:
    long = "x" * (MAX_ID + 1) + "@x"
    found = parse_message_id([f"<{long}>"])
    assert found is not None
    assert len(found) <= MAX_ID
    assert parse_references([f"<1@x> <{long}>"]) == ("1@x", found)
    assert parse_in_reply_to([long]) == (found,)
    assert parse_message_id([f"<y{long}>"]) != found


@settings(max_examples=200)
@given(st.lists(st.text("<>@ab \t\0()\"'", max_size=40), max_size=3))
def test_ids_hold_no_bracket_and_no_space(values: list[str]) -> None:
    for found in (
        *parse_references(values),
        *parse_in_reply_to(values),
        parse_message_id(values) or "x",
    ):
        assert found
        assert not set(found) & set("<> \t\0")


@pytest.mark.parametrize(("in_reply_to", "references", "expected"), [
    ("<jo@x>", "<1@x> <2@x>", ((), ("1@x", "2@x"))),
    ("<2@x>", "<jo@x> <2@x>", (("2@x",), ("2@x",))),
    ("<Jo@x>", "<Jo@x> <2@x>", (("Jo@x",), ("Jo@x", "2@x"))),
])  # fmt: skip
def test_address_is_an_id_only_where_both_fields_name_it(
    in_reply_to: str, references: str, expected: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    assert parse_parents([in_reply_to], [references], {"jo@x"}) == expected


def test_mail_names_no_placeholder_of_a_forgotten_message() -> None:
    """A stranger could otherwise make a page say that a message was forgotten."""
    forged = "<0123@forgotten.invalid>"
    assert parse_message_id([forged]) is None
    assert parse_references([f"<a@example.org> {forged}"]) == ("a@example.org",)
    assert parse_in_reply_to([forged]) == ()

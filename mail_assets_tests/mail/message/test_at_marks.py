"""Addresses that pipermail wrote in the language of the list."""

import pytest

from mail_assets.mail.message.addresses import AT_MARKS, Address, parse_addresses

PEOPLE = [Address("Ana Gil", "ana.gil@lists.example.org")]


@pytest.mark.parametrize("mark", AT_MARKS)
@pytest.mark.parametrize("is_utf8", [False, True])
def test_the_address_and_the_name_are_read_in_every_language(mark: str, is_utf8: bool) -> None:
    charset = "utf-8" if is_utf8 else AT_MARKS[mark][0]
    value = f"ana.gil{mark}lists.example.org (Ana Gil)".encode(charset)
    assert list(parse_addresses([value], obfuscated=True)) == PEOPLE


def test_who_has_no_name_has_the_address_for_one() -> None:
    value = b"ana en example.org (ana en example.org)"
    [found] = parse_addresses([value], obfuscated=True)
    assert found.email == "ana@example.org"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"ana en casa (x)", Address("ana en casa", "")),
        (b"Ana en Example.org <ana@example.org>", Address("Ana en Example.org", "ana@example.org")),
        (b"Jo at Home <jo@example.org>", Address("Jo at Home", "jo@example.org")),
        (b"Ana Gil en example.org y Jo", Address("Ana Gil en example.org y Jo", "")),
    ],
)
def test_names_are_not_taken_for_addresses(value: bytes, expected: Address) -> None:
    assert parse_addresses([value], obfuscated=True)[0] == expected


def test_other_archives_write_no_marks() -> None:
    [found] = parse_addresses([b"ana en example.org (Ana Gil)"])
    assert found.email == ""

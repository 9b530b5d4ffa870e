"""Printing tables, and text that strangers wrote."""

import pytest

from mail_assets.cli.command import plural, print_table, printable, printable_line


def test_a_table_is_aligned_and_numbers_are_to_the_right(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(("list", "messages", "note"), [("dev", 1_234_567, ""), ("users", 8, "a\x1b[2Jb")])
    assert capsys.readouterr().out == (
        "list      messages  note\n"
        "dev      1,234,567\n"
        "users            8  a\N{REPLACEMENT CHARACTER}[2Jb\n"
    )


def test_a_table_without_rows_is_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("list", "messages"), [])
    assert capsys.readouterr().out == ""


def test_a_table_without_header_is_its_rows(capsys: pytest.CaptureFixture[str]) -> None:
    print_table((), [("home", "/x"), ("encoder", "1e5")])
    assert capsys.readouterr().out == "home     /x\nencoder  1e5\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\r\nb", "a b"),
        ("a\x1b[31mb", "a\N{REPLACEMENT CHARACTER}[31mb"),
        ("a\x9b31mb", "a\N{REPLACEMENT CHARACTER}31mb"),
        ("  a\tb  ", "a b"),
    ],
)
def test_text_on_one_line_has_no_control_characters(text: str, line: str) -> None:
    assert printable_line(text) == line


def test_text_keeps_its_lines_and_tabs() -> None:
    assert printable("a\r\n\tb\x07") == "a\n\tb\N{REPLACEMENT CHARACTER}"


def test_a_count_has_its_noun() -> None:
    assert [plural(0, "hit"), plural(1, "hit"), plural(2, "person", "people")] == [
        "0 hits",
        "1 hit",
        "2 people",
    ]

"""What the encoder sees of a chunk."""

import pytest

from mail_assets.text.chunking import MAX_HEADER_BYTES, build_document


@pytest.mark.parametrize(
    ("header", "text", "expected"),
    [("Re: x", "text", "Re: x\ntext"), (" x ", "y", "x\ny"), ("x", "", "x"), ("", "y", "y")],
)
def test_the_header_comes_first_and_an_empty_half_leaves_no_line_end(
    header: str, text: str, expected: str
) -> None:
    assert build_document(header, text) == expected


@pytest.mark.parametrize(
    "header", ["x " * 500, "한" * 500, "漢字" * 500, "\U0001f44d" * 500, "é" * 500]
)
def test_an_absurd_subject_is_cut_and_the_text_is_kept(header: str) -> None:
    assert len(build_document(header, "").encode()) <= MAX_HEADER_BYTES
    assert build_document(header, "y").endswith("\ny")
    assert build_document(build_document(header, ""), "y") == build_document(header, "y")


def test_a_subject_of_ordinary_length_is_not_cut() -> None:
    header = "Re: [HACKERS] " + "x" * (MAX_HEADER_BYTES - 14)
    assert build_document(header, "") == header

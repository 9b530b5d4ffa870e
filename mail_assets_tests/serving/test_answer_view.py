"""The text of an answer on a page: what it cites is linked, and nothing else."""

import pytest

from mail_assets.web.pages import view_answer

CITATIONS = [{"number": number, "url": f"/message/{number}@example.org"} for number in (1, 2)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It holds [1].\n\nNot for long [1, 2].", ["It holds [{1}].", "Not for long [{1}, {2}]."]),
        ("Read `argv[1]` first [2].", ["Read `argv[1]` first [{2}]."]),
        ("So:\n```\nboats[1]\n\nat[2]\n```\nIt is [1].",
         ["So:", "```", "boats[1]", "at[2]", "```", "It is [{1}]."]),
        ("```\nboats[1]", ["```", "boats[1]"]),
        ("A `tick [1]\nand another` [3]", ["A `tick [{1}]", "and another` [3]"]),
        ("", []),
    ],
)  # fmt: skip
def test_citations_are_links_but_in_code(text: str, shown: list[str]) -> None:
    paragraphs = view_answer({"text": text, "citations": CITATIONS})
    assert [
        "".join(f"{{{piece.text}}}" if piece.url else piece.text for piece in paragraph)
        for paragraph in paragraphs
    ] == shown

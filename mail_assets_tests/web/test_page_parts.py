"""Parts of pages: citations are links, and pages of a thread link each other."""

import pytest

from mail_assets.web.page_parts import choose_pages, view_answer

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
def test_citations_are_links_except_in_code(text: str, shown: list[str]) -> None:
    paragraphs = view_answer({"text": text, "citations": CITATIONS})
    assert [
        "".join(f"{{{piece.text}}}" if piece.url else piece.text for piece in paragraph)
        for paragraph in paragraphs
    ] == shown


@pytest.mark.parametrize(
    ("count", "here", "linked"),
    [
        (1, 0, [0]),
        (3, 1, [0, 1, 2]),
        (100, 0, [0, 1, 2, 3, 99]),
        (100, 50, [0, 47, 48, 49, 50, 51, 52, 53, 99]),
        (100, 99, [0, 96, 97, 98, 99]),
    ],
)
def test_thread_page_links_its_neighbours_and_both_ends(
    count: int, here: int, linked: list[int]
) -> None:
    pages = [f"/thread/{number}" for number in range(count)]
    assert choose_pages({"pages": pages, "url": pages[here]}) == linked

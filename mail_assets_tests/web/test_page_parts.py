"""Parts of pages: bodies lose no text, quotes are separate, links lead where they say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mail_assets.mail.body.segments import Segment
from mail_assets.mail.message.text_addresses import mask_addresses
from mail_assets.web.page_parts import (
    OPEN_QUOTE,
    Piece,
    choose_pages,
    link_pieces,
    split_parts,
    view_answer,
)

BODY = "Ann wrote:\n> why?\n\nBecause.\n-- \nBob\n"
SEGMENTS = [
    Segment(0, 11, "attribution"),
    Segment(11, 18, "quote"),
    Segment(18, 28, "text"),
    Segment(28, 36, "signature"),
]


def text_of(pieces: list[Piece] | tuple[Piece, ...]) -> str:
    return "".join(piece.text for piece in pieces)


def test_attribution_is_part_of_its_quote() -> None:
    parts = [*split_parts(BODY, SEGMENTS, frozenset())]
    assert [(part.kind, part.is_folded, len(part.lines)) for part in parts] == [
        ("quote", False, 2),
        ("text", False, 1),
        ("signature", True, 2),
    ]
    assert [text_of(line) for line in parts[0].lines] == ["Ann wrote:", "> why?"]


def test_long_quote_is_folded_with_its_first_line() -> None:
    body = "Ann wrote:\n" + "> why?\n" * OPEN_QUOTE
    [part] = split_parts(body, [Segment(0, len(body), "quote")], frozenset())
    assert (part.is_folded, part.opening) == (True, "Ann wrote:")
    [short] = split_parts("> why?\n", [Segment(0, 7, "quote")], frozenset())
    assert (short.is_folded, short.opening) == (False, "why?")


def test_footer_is_part_of_the_signature() -> None:
    body = "-- \nBob\n____\nThe list\n"
    segments = [Segment(0, 8, "signature"), Segment(8, len(body), "footer")]
    [part] = split_parts(body, segments, frozenset())
    assert (part.kind, part.is_folded, part.opening) == ("signature", True, "Bob")


def test_body_without_segments_is_text() -> None:
    [part] = split_parts(BODY, [], frozenset())
    assert "\n".join(map(text_of, part.lines)) == BODY.strip("\n")


def test_urls_and_known_ids_are_links() -> None:
    line = "See (https://example.org/a?b=1). It was <id1@example.org>, not ann@example.org."
    links = [piece for piece in link_pieces(line, {"id1@example.org"}) if piece.url]
    assert links == [
        Piece("https://example.org/a?b=1", "https://example.org/a?b=1"),
        Piece("id1@example.org", "/message/id1@example.org"),
    ]


def test_url_is_linked_whole_or_not_at_all() -> None:
    url = "https://example.org/list/id1@example.org/"
    assert [*link_pieces(f"See <{url}>", {"id1@example.org"})][1] == Piece(url, url)
    hidden = mask_addresses(f"See <{url}>")
    assert [*link_pieces(hidden, frozenset())] == [Piece(hidden)]


def test_deceptive_url_is_not_linked() -> None:
    for line in (
        "javascript:alert(1)",
        "data:text/html,x",
        "//evil.example",
        "ftp://example.org",
        "https://good.example@evil.example/",
    ):
        links = [piece.url for piece in link_pieces(line, frozenset()) if piece.url]
        assert links in ([], ["https://good.example"])


@given(st.text(st.sampled_from("ab:/.@ <>()\u202e&?\"'ht ps"), max_size=60))
def test_pieces_join_to_the_line(line: str) -> None:
    pieces = [*link_pieces(line, {"a@b"})]
    assert text_of(pieces) == line
    assert all(
        not piece.url or piece.url.startswith(("https://", "http://", "/message"))
        for piece in pieces
    )


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

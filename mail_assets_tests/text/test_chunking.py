"""Chunks of a message: sizes, cut points, and the document of a chunk."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from mail_assets.text.chunk_sizes import MAX_HEADER_BYTES, MIN_ROOM, ChunkSizes
from mail_assets.text.chunking import (
    Chunk,
    Chunks,
    Spans,
    build_document,
    chunk_body,
    find_cut_points,
)
from mail_assets.text.tokens import tokenise
from mail_assets_tests.text.minilm import minilm

SIZES = ChunkSizes(target=160, max_tokens=200, min_tokens=20, overlap=30)


TOKENIZER = minilm()


def count(text: str) -> int:
    return len(TOKENIZER.encode(text, add_special_tokens=False))


def whole(body: str) -> list[tuple[int, int]]:
    return [(0, len(body))] if body else []


def check(
    body: str,
    spans: Spans,
    header: str,
    sizes: ChunkSizes = SIZES,
    tokenizer: Tokenizer = TOKENIZER,
) -> Chunks:
    """Chunk a body and check all that must hold of any result."""
    result = chunk_body(body, spans, header, tokenizer, sizes)
    assert result == chunk_body(body, spans, header, tokenizer, sizes)
    assert [c.index for c in result.chunks] == list(range(len(result.chunks)))
    assert len(result.chunks) <= sizes.max_chunks
    seen = bytearray(len(body))
    for c in result.chunks:
        assert c.text == "".join(body[start:end] for start, end in c.spans) == c.text.strip()
        text = build_document(header, c.text)
        assert c.tokens == len(tokenizer.encode(text, add_special_tokens=False))
        assert c.tokens <= sizes.max_tokens
        assert len(c.text) <= sizes.max_chars
        assert all(left[1] < right[0] for left, right in pairwise(c.spans))
        for start, end in c.spans:
            assert start < end
            seen[start:end] = b"\1" * (end - start)
    new = [i for start, end in spans for i in range(start, end)]
    assert sum(seen) == sum(seen[i] for i in new)
    if not result.truncated and any(c.spans for c in result.chunks):
        assert all(seen[i] or body[i].isspace() for i in new)
    return result


def sentences(n: int, first: int = 0) -> str:
    return " ".join(f"Sentence number {i} says a little." for i in range(first, first + n))


def test_short_answer_is_one_chunk_with_its_subject() -> None:
    body = "> Is it fixed?\n\nYes.\n"
    result = check(body, [(14, len(body))], "Re: bug")
    assert result == Chunks([Chunk(0, ((16, 20),), "Yes.", count("Re: bug Yes."))], False)
    assert build_document("Re: bug", result.chunks[0].text) == "Re: bug\nYes."


def test_message_without_new_text_is_found_by_its_subject() -> None:
    expected = Chunks([Chunk(0, (), "", count("Re: bug"))], False)
    assert check("> quote\n", [], "Re: bug") == expected
    assert check(" \n\t\n", [(0, 4)], "Re: bug") == expected
    assert build_document("Re: bug", "") == "Re: bug"


@pytest.mark.parametrize(("body", "header"), [("", ""), ("> quote\n", " "), (" \n", "\t\n")])
def test_nothing_at_all_has_no_chunk(body: str, header: str) -> None:
    spans = whole(body) if body.isspace() else []
    assert check(body, spans, header) == Chunks([], False)


def test_text_without_a_subject_is_embedded_alone() -> None:
    assert build_document("", "text") == "text"
    assert check("text", [(0, 4)], "").chunks == [Chunk(0, ((0, 4),), "text", 1)]


@pytest.mark.parametrize(
    "header", ["x " * 500, "한" * 500, "漢字" * 500, "\U0001f44d" * 500, "é" * 500]
)
def test_absurd_subject_leaves_room_for_the_text(header: str) -> None:
    result = check(sentences(60), whole(sentences(60)), header)
    assert len(result.chunks) > 1


def test_paragraphs_are_kept_apart_and_sentences_whole() -> None:
    paragraphs = [sentences(12, 100 * i) for i in range(6)]
    body = "\n\n".join(paragraphs)
    texts = [c.text for c in check(body, whole(body), "").chunks]
    assert len(texts) > 2
    for text in texts[:-1]:
        assert any(text.endswith(paragraph) for paragraph in paragraphs)
    unbroken = check(sentences(80), whole(sentences(80)), "").chunks
    assert all(c.text.startswith("Sentence") and c.text.endswith("little.") for c in unbroken)


def test_neighbouring_chunks_share_a_few_sentences() -> None:
    body = sentences(80)
    chunks = check(body, whole(body), "").chunks
    for before, after in pairwise(chunks):
        shared = body[after.spans[0][0] : before.spans[-1][1]]
        assert 0 < count(shared) <= SIZES.overlap
    apart = check(body, whole(body), "", SIZES._replace(overlap=0)).chunks
    assert all(a.spans[-1][1] <= b.spans[0][0] for a, b in pairwise(apart))


def test_two_answers_are_cut_between_rather_than_inside() -> None:
    first, second = sentences(18) + "\n", sentences(18, 50) + "\n"
    body = f"{first}> a quote\n{second}"
    spans = [(0, len(first)), (len(body) - len(second), len(body))]
    assert [c.text for c in check(body, spans, "", SIZES._replace(overlap=0)).chunks] == [
        first.strip(),
        second.strip(),
    ]


@pytest.mark.parametrize("n", range(20, 90))
def test_last_chunk_is_not_left_with_a_few_words(n: int) -> None:
    body = sentences(n)
    chunks = check(body, whole(body), "", SIZES._replace(target=190, overlap=0)).chunks
    assert (len(chunks) == 1) == (count(body) <= SIZES.max_tokens)
    assert chunks[-1].tokens >= SIZES.min_tokens


def test_short_tail_that_does_not_fit_is_a_chunk() -> None:
    sizes = ChunkSizes(target=200, max_tokens=200, min_tokens=20, overlap=0)
    body = "word " * 200 + "\n\n" + "tail " * 5
    texts = [c.text for c in check(body, whole(body), "", sizes).chunks]
    assert texts[-1] == "tail tail tail tail tail"


BLOCKS = {
    "statement": "SELECT a,\n"
    + "".join(f"       column_{i} + {i},\n" for i in range(12))
    + "       z\n  FROM t\n WHERE a > 1;\n",
    "plan": " Sort  (cost=1.10..2.20 rows=3 width=4)\n"
    + "".join(
        f"   ->  Seq Scan on t{i}  (cost=0.00..1.00 rows=3)\n         Filter: (a > {i})\n"
        for i in range(4)
    ),
    "table": " id | name\n----+------\n"
    + "".join(f"  {i} | row{i}\n" for i in range(20))
    + "(20 rows)\n",
    "log": "".join(
        f"2026-01-05 10:11:{i:02} UTC [77] LOG:  checkpoint {i}\n\tdone.\n" for i in range(6)
    ),
    "backtrace": "".join(f"#{i}  0x0000 in f{i} () at a{i}.c:{i}\n" for i in range(10)),
    "traceback": "Traceback (most recent call last):\n"
    + "".join(f'  File "m{i}.py", line {i}, in f{i}\n    call_{i}()\n' for i in range(8)),
}


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
@pytest.mark.parametrize("before", range(4, 30, 3))
def test_block_that_fits_is_never_cut(block: str, before: int) -> None:
    assert 80 < count(block) < SIZES.max_tokens - 5, count(block)
    body = f"{sentences(before)}\nI get:\n{block}{sentences(30, 500)}"
    result = check(body, whole(body), "Re: plan")
    assert any(block.strip() in c.text for c in result.chunks)


def test_block_too_big_for_a_chunk_is_cut_between_its_lines() -> None:
    rows = [f" {i:4} | row{i:04}" for i in range(300)]
    body = "\n".join(rows)
    for c in check(body, whole(body), "").chunks:
        assert {line.strip() for line in c.text.split("\n")} <= {row.strip() for row in rows}


@pytest.mark.parametrize("body", [
    pytest.param("a" * 60_000, id="one word of 60,000 letters"),
    pytest.param("漢字" * 30_000, id="no spaces"),
    pytest.param("a,b;" * 15_000, id="punctuation"),
    pytest.param("x " * 200 + "a" * 20_001 + " y" * 200, id="a long word among short ones"),
    pytest.param("word" + " " * 20_000 + "word", id="a wide gap"),
    pytest.param("a" + "\u0301" * 20_000 + " b", id="combining marks"),
    pytest.param("a" + "\x01" * 20_000 + "b", id="characters without tokens"),
])  # fmt: skip
def test_line_without_cuts_is_cut_by_words_or_characters(body: str) -> None:
    result = check(body, whole(body), "Re: line", SIZES._replace(max_chunks=2_000))
    assert not result.truncated


def test_long_message_says_that_it_is_truncated() -> None:
    body = sentences(3_000)
    result = check(body, whole(body), "Re: log")
    assert (len(result.chunks), result.truncated) == (64, True)
    exact = check(body, whole(body), "Re: log", SIZES._replace(max_chunks=10_000))
    assert exact.chunks[:64] == result.chunks
    fits = check(body, whole(body), "Re: log", SIZES._replace(max_chunks=len(exact.chunks)))
    assert fits == exact


def test_message_longer_than_all_chunks_is_truncated() -> None:
    sizes = SIZES._replace(max_chars=100, max_chunks=3)
    body = "word " * 59 + "ended"
    assert not check(body, whole(body), "", sizes).truncated
    assert check(body + " more", whole(body + " more"), "", sizes).truncated
    assert not check(body + "\n" * 900, whole(body + "\n" * 900), "", sizes).truncated


def test_word_of_more_tokens_than_fit_is_cut_inside() -> None:
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    tokens = ["[UNK]", *letters, *("##" + c for c in letters), "##abc"]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    tokenizer = Tokenizer(
        models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100_000)
    )
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    body = "x" + "abc" * 600 + " y"  # WordPiece takes the cube of a word's length
    sizes = ChunkSizes(target=199, max_tokens=200, min_tokens=0, overlap=0)
    assert len(check(body, whole(body), "z", sizes, tokenizer).chunks) > 3


PIECES = st.sampled_from(
    [
        "word", "the", "wording", "end.", "Next", "\n", "\n\n", "\n \n", "a_b(c)", "naïve",
        "e\u0301", "漢字。", "한국", "\U0001f44d\U0001f3fd", "\x01", "\ufffd",
        "x" * 130, "-----", "מרחבה",
        "\u2028", "select * from t;\n", "\t", " a | b\n", "->  Scan (cost=1)\n",
        "antidisestablishmentarianism",
        "0x7ffd5e8a9c40", "\u200d", "İ",
    ]
)  # fmt: skip


@given(
    st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=60),
    st.integers(1, 12),
    st.lists(st.integers(0, 10_000), max_size=10),
    st.sampled_from(["", "Re: subject", "한" * 90, "\x01"]),
    st.sampled_from(
        [
            SIZES,
            ChunkSizes(
                MIN_ROOM, MAX_HEADER_BYTES + MIN_ROOM, 10, 8, max_chars=150, max_chunks=1_000
            ),
            ChunkSizes(40, MAX_HEADER_BYTES + MIN_ROOM, 0, 39, max_chunks=3),
        ]
    ),
)
@settings(max_examples=150)
def test_chunks_cover_the_new_text_and_cite_it_exactly(
    pieces: list[str], times: int, edges: list[int], header: str, sizes: ChunkSizes
) -> None:
    body = " ".join(pieces * times)
    check(body, whole(body), header, sizes)
    points = sorted(min(edge, len(body)) for edge in edges)
    spans = zip(points[::2], points[1::2], strict=False)
    check(body, [span for span in spans if span[0] < span[1]], header, sizes)


@pytest.mark.parametrize(
    "spans", [[(0, 3), (2, 5)], [(3, 5), (0, 2)], [(0, 99)], [(3, 2)], [(-1, 2)]]
)
def test_spans_out_of_order_are_refused(spans: Spans) -> None:
    with pytest.raises(ValueError, match="body of 5 characters"):
        chunk_body("a b c", spans, "", TOKENIZER, SIZES)


def test_tokenizer_that_truncates_or_pads_is_refused() -> None:
    truncating, padding = minilm(), minilm()
    truncating.enable_truncation(128)
    padding.enable_padding()
    for tokenizer in (truncating, padding):
        with pytest.raises(ValueError, match="no_truncation"):
            chunk_body("a", [(0, 1)], "", tokenizer, SIZES)


def test_header_takes_its_tokens_from_the_text() -> None:
    SIZES.check()
    assert SIZES.with_header(10) == SIZES._replace(max_tokens=190)
    assert SIZES.with_header(60) == SIZES._replace(target=140, max_tokens=140)


@pytest.mark.parametrize(
    "change",
    [{"max_tokens": 100}, {"overlap": 160}, {"target": 201}, {"max_chars": 0}, {"max_chunks": 0}],
)
def test_sizes_that_cannot_work_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"max_tokens is 100|sizes must obey"):
        SIZES._replace(**change).check()


LINE, SENTENCE, PARAGRAPH = 1, 2, 3


def places(text: str, *seams: int, max_tokens: int = 100, max_chars: int = 1_000) -> dict[str, int]:
    """The word at each cut, and its rank."""
    tokens = tokenise(text, TOKENIZER)
    cuts = find_cut_points(tokens, text, seams, max_tokens, max_chars)
    assert cuts.places == sorted(cuts.ranks)
    return {text[tokens.starts[i] :].split()[0]: cuts.ranks[i] for i in cuts.places}


@pytest.mark.parametrize(("text", "expected"), [
    ("one two", {}),
    ("one\ntwo", {"two": LINE}),
    ("one. Two! (three)", {"Two!": SENTENCE, "(three)": SENTENCE}),
    ("e.g. this and v1.2 that", {}),
    ("one.\nTwo", {"Two": SENTENCE}),
    ("one\n \t\ntwo\nthree", {"two": PARAGRAPH, "three": LINE}),
    ("漢。字", {"字": SENTENCE}),
    ("\n\none\n", {}),
])  # fmt: skip
def test_cut_is_as_good_as_the_best_that_ends_there(text: str, expected: dict[str, int]) -> None:
    assert places(text) == expected


def test_seam_is_as_good_as_a_paragraph() -> None:
    assert places("one\ntwo three", 4) == {"two": PARAGRAPH}
    assert places("one\ntwo three", 8) == {"two": LINE, "three": PARAGRAPH}


def test_block_stays_whole_if_it_fits() -> None:
    text = "before\nselect a,\n  b\n  from t;\nafter"
    whole = {"select": LINE, "after": LINE}
    assert places(text) == whole
    assert places(text, max_tokens=7) == whole
    assert places(text, max_tokens=6) == {**whole, "b": LINE, "from": LINE}
    assert places(text, max_chars=10) == {**whole, "b": LINE, "from": LINE}


@pytest.mark.parametrize(
    ("header", "text", "expected"),
    [("Re: x", "text", "Re: x\ntext"), (" x ", "y", "x\ny"), ("x", "", "x"), ("", "y", "y")],
)
def test_document_has_header_first_and_no_empty_half(header: str, text: str, expected: str) -> None:
    assert build_document(header, text) == expected


@pytest.mark.parametrize(
    "header", ["x " * 500, "한" * 500, "漢字" * 500, "\U0001f44d" * 500, "é" * 500]
)
def test_absurd_subject_is_cut_and_the_text_is_kept(header: str) -> None:
    assert len(build_document(header, "").encode()) <= MAX_HEADER_BYTES
    assert build_document(header, "y").endswith("\ny")
    assert build_document(build_document(header, ""), "y") == build_document(header, "y")


def test_subject_of_ordinary_length_is_not_cut() -> None:
    header = "Re: [HACKERS] " + "x" * (MAX_HEADER_BYTES - 14)
    assert build_document(header, "") == header

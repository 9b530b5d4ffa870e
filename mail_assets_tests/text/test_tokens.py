"""Tokens of a text by their first characters."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from mail_assets.text import tokens
from mail_assets.text.tokens import count_tokens, encode_ids, tokenise
from mail_assets_tests.text.minilm import minilm

TOKENIZER = minilm()


def test_characters_without_token_belong_to_the_left() -> None:
    found = tokenise(" \x01a\x01 \x01unaffable", TOKENIZER)
    assert found.starts[0] == 0
    assert found.starts[-1] == 15
    assert found.starts[1] == 6
    assert found.at(3) == 1
    assert found.at(15) == len(found.words) == count_tokens("a unaffable", TOKENIZER)
    assert [found.begins_word(i) for i in (0, 1, 2, len(found.words))] == [True, True, False, True]


STRANGE = [
    "", " ", "\n", "\x01", "a\x01b", "\x01 \x02", "foo,bar foo,bar", "[CLS] [MASK]x [UNK]",
    "e\u0301 \u0301e caf\u00e9", "ΑΣ ΣΑ", "日本語 text", "a\u00a0b\u2003c\u200bd\x85e\x1cf",
    "http://example.org/a/very/long/path?with=many&parts=of#it again", "İ ſ ß 🙂", "한국어",
    "##ing ##", "\ufffd\x00", "- " * 90, "a" * 300, "a[MASK]b", "[[SEP]]", "[PA", "D]", "a,\u0301b",
    ",\x01b\x7f,", "It's a_b-c@d.e", "x\u0301y-z", "[\x01MASK]", "\u00ad-a\u00ad.", "a\x0bb.\x0c-",
]  # fmt: skip


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from(STRANGE) | st.text(max_size=12), max_size=8),
    st.sampled_from([" ", "\n", "", "-"]),
)
def test_text_has_the_tokens_that_the_tokenizer_gives_it(parts: list[str], blank: str) -> None:
    text = blank.join(parts)
    encoding = TOKENIZER.encode(text, add_special_tokens=False)
    starts = [start for start, _ in encoding.offsets]
    for _ in ("first met", "known"):
        found = tokenise(text, TOKENIZER)
        assert found.starts == [0, *starts[1:], len(text)]
        assert found.words == encoding.word_ids
        assert encode_ids([text, "a b", text], TOKENIZER)[::2] == [encoding.ids] * 2


def test_cache_of_a_tokenizer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_CACHED", 10)
    tokenizer = minilm()
    for number in range(30):
        assert len(tokenise(f"message {number} {'x' * 41}", tokenizer).words) > 2
    known = tokens._known_units(tokenizer)
    assert known is not None
    assert len(known._units) <= 12
    assert max(map(len, known._units)) < 41


def test_other_tokenizer_than_berts_gets_the_whole_text() -> None:
    tokenizer = Tokenizer(WordLevel({"a b": 0, "?": 1}, unk_token="?"))
    assert tokenise("a b", tokenizer) == ([0, 3], [0])
    assert encode_ids(["a b", "a"], tokenizer) == [[0], [1]]

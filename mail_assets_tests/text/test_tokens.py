"""The tokens of a text, by their first characters."""

from mail_assets.text.tokens import count_tokens, tokenise
from mail_assets_tests.text.minilm import minilm

TOKENIZER = minilm()


def test_characters_without_a_token_belong_to_the_token_on_their_left() -> None:
    tokens = tokenise(" \x01a\x01 \x01unaffable", TOKENIZER)
    assert tokens.starts[0] == 0
    assert tokens.starts[-1] == 15
    assert tokens.starts[1] == 6
    assert tokens.at(3) == 1
    assert tokens.at(15) == len(tokens.words) == count_tokens("a unaffable", TOKENIZER)
    assert [tokens.begins_word(i) for i in (0, 1, 2, len(tokens.words))] == [
        True,
        True,
        False,
        True,
    ]

"""Documents made of words whose frequencies are those of a language (Zipf's law)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate

from mail_assets.month import ListMonth
from mail_assets.words.index import Document

#: Lexemes that a tokenizer could cut, fold, stem or drop.
STRANGE = (
    "Foo", "foo", "café", "cafe", "cafe\u0301", "running", "run", "the", "it's", "''", '"', "\\",
    "a/b/c", "a b", "a\u00a0b", "a\tb", "1.5", "-3", "+x", "foo*", "*", "(", "<a@b.example>",
    "x" * 2000, "ü" * 1000, "日本語", "नमस्ते", "ſ", "ß", "İ", "🙂", "\ua041", "\ua080", "%41",
)  # fmt: skip
VOCABULARY = (*STRANGE, *(f"w{number}" for number in range(1500)))
FLAGS = ("patch", "attachment", "reply", "first")


def document(number: int, lexemes: Sequence[str], list_name: str = "a-list") -> Document:
    """Return a document; month, sender and flags follow from its number."""
    month = ListMonth(list_name, f"{2020 + number % 5}-{number % 12 + 1:02d}")
    return Document(
        key=f"{month.key}|{number:06d}",
        month=month,
        message_id=f"<{number}@example.org>",
        variant=number % 2,
        sent_at=1_600_000_000 + 1000 * number,
        sender=f"sender{number % 50}@example.org",
        flags=tuple(flag for place, flag in enumerate(FLAGS) if number % (place + 2) == 0),
        lexemes=tuple(lexemes),
    )


def documents(count: int, seed: int = 7) -> list[Document]:
    """Return documents of 1 to 80 words; the same for the same seed."""
    chance = random.Random(seed)
    cumulative = list(accumulate(1 / (rank + 1) for rank in range(len(VOCABULARY))))
    order = chance.sample(VOCABULARY, len(VOCABULARY))
    return [
        document(
            number,
            chance.choices(order, cum_weights=cumulative, k=chance.randint(1, 80)),
            chance.choice(["a-list", "o'list", "another"]),
        )
        for number in range(count)
    ]

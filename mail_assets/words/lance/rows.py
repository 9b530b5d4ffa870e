"""Documents as rows of a LanceDB table, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from mail_assets.lance.table import PRIMARY_KEY, READ_SINGLY
from mail_assets.month import known_month, month_number
from mail_assets.words.document import Document, WordMatch
from mail_assets.words.lance.tokens import encode_lexemes, encode_prefixes

SCHEMA = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False, metadata=PRIMARY_KEY),
        pa.field("list", pa.string()),
        pa.field("month", pa.float64()),
        pa.field("sent_at", pa.float64()),
        pa.field("sender", pa.string()),
        pa.field("message_id", pa.string()),
        pa.field("flags", pa.list_(pa.string())),
        # What a match has, as JSON: 300 matches in five columns take 12 ms to read, in one 2.
        pa.field("match", pa.string(), metadata=READ_SINGLY),
        pa.field("lexemes", pa.string()),
        pa.field("prefixes", pa.string()),
    ]
)

# One commit: a month of a large list.
MAX_BATCH = 20_000
MAX_LEXEMES = 10_000_000


def batch_documents(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Yield batches that fit into memory, no key twice in one; the last under a key stays."""
    batch: dict[str, Document] = {}
    size = 0
    for document in documents:
        if batch and (len(batch) == MAX_BATCH or size + len(document.lexemes) > MAX_LEXEMES):
            yield list(batch.values())
            batch, size = {}, 0
        batch[document.key] = document
        size += len(document.lexemes)
    if batch:
        yield list(batch.values())


def to_arrow(batch: Sequence[Document]) -> pa.Table:
    """Return documents as rows."""
    rows = [
        (
            document.key,
            document.month.list_name,
            float(month_number(document.month.month)),
            float(document.sent_at),
            document.sender,
            document.message_id,
            list(document.flags),
            _match_json(document),
            encode_lexemes(document.lexemes),
            encode_prefixes(document.lexemes),
        )
        for document in batch
    ]
    columns = zip(*rows, strict=True)
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)],
        schema=SCHEMA,
    )


def to_matches(texts: Sequence[str], scores: Iterable[float]) -> list[WordMatch]:
    """Return the rows of a search from their column `match`, with these scores."""
    # One document of JSON is parsed in a quarter of the time of 300.
    rows = json.loads(f"[{','.join(texts)}]")
    return [
        WordMatch(key, known_month(list_name, month), message_id, variant, score)
        for (key, list_name, month, message_id, variant), score in zip(rows, scores, strict=True)
    ]


def _match_json(document: Document) -> str:
    month = document.month
    return json.dumps(
        [document.key, month.list_name, month.month, document.message_id, document.variant],
        ensure_ascii=False,
    )

"""Responses as tables: one of all searches, and one of hits and one of places for each query."""

from collections.abc import Sequence

import dagster as dg

from mail_assets.search.response import Hit, Response

#: Characters of a chunk that a row shows.
TEXT = 400

Cell = str | int | float | bool | None

SEARCHES = dg.TableSchema(
    [
        dg.TableColumn("number", "int"),
        dg.TableColumn("query", "string"),
        dg.TableColumn("mode", "string"),
        dg.TableColumn("hits", "int"),
        dg.TableColumn("short", "bool", "fewer than asked for"),
        dg.TableColumn("took_ms", "float"),
        dg.TableColumn("nearest_ms", "float", "model and vector index"),
        dg.TableColumn("words_ms", "float", "index of words, at the same time"),
        dg.TableColumn("stored_ms", "float", "what PostgreSQL has of both, and of their threads"),
        dg.TableColumn("rerank_ms", "float", "the model, where the index is a static one"),
        dg.TableColumn("again", "string", "a query that asks for the same"),
    ]
)

HITS = dg.TableSchema(
    [
        dg.TableColumn("rank", "int"),
        dg.TableColumn("subject", "string"),
        dg.TableColumn("sender", "string"),
        dg.TableColumn("date", "string"),
        dg.TableColumn("lists", "string"),
        dg.TableColumn("score", "float"),
        dg.TableColumn("semantic", "int", "rank in the semantic leg"),
        dg.TableColumn("fulltext", "int", "rank in the full-text leg"),
        dg.TableColumn("words", "string", "of the query, in its subject and chunks"),
        dg.TableColumn("distance", "float", "cosine distance of the nearest chunk"),
        dg.TableColumn("thread_score", "float", "the part of the score that comes from its thread"),
    ]
)

PLACES = dg.TableSchema(
    [
        dg.TableColumn("rank", "int"),
        dg.TableColumn("message_id", "string"),
        dg.TableColumn("text", "string", "of the best chunk of the message"),
        dg.TableColumn("spans", "string", "of that text, in characters of the body"),
        dg.TableColumn("highlights", "string", "of the words in it, likewise"),
        dg.TableColumn("chunks", "string", "keys of the chunks shown, best first"),
        dg.TableColumn("attachments", "string"),
        dg.TableColumn("copies", "string", "near-duplicates folded into it"),
        dg.TableColumn("in_thread", "string", "further hits of its thread"),
        dg.TableColumn("thread_id", "string"),
    ]
)


def search_table(responses: Sequence[Response]) -> dg.TableMetadataValue:
    """Return a row for each search: what was asked, and where the time went."""
    rows = [dg.TableRecord(_search_row(n, one)) for n, one in enumerate(responses, 1)]
    return dg.MetadataValue.table(rows, SEARCHES)


def hit_table(response: Response) -> dg.TableMetadataValue:
    """Return a row for each hit: what it is, and why it is one."""
    rows = [dg.TableRecord(_hit_row(rank, hit)) for rank, hit in enumerate(response.hits, 1)]
    return dg.MetadataValue.table(rows, HITS)


def place_table(response: Response) -> dg.TableMetadataValue:
    """Return a row for each hit: its ids, and the places of its text."""
    rows = [dg.TableRecord(_place_row(rank, hit)) for rank, hit in enumerate(response.hits, 1)]
    return dg.MetadataValue.table(rows, PLACES)


def _search_row(number: int, response: Response) -> dict[str, Cell]:
    legs = (response.explain or {}).get("ms", {})
    return {
        "number": number,
        "query": response.query,
        "mode": response.mode,
        "hits": len(response.hits),
        "short": response.short,
        "took_ms": response.took_ms,
        **{f"{leg}_ms": legs.get(leg) for leg in ("nearest", "words", "stored", "rerank")},
        "again": response.permalink,
    }


def _hit_row(rank: int, hit: Hit) -> dict[str, Cell]:
    return {
        "rank": rank,
        "subject": hit.subject,
        "sender": hit.from_name or hit.from_email,
        "date": hit.sent_at[:10],
        "lists": ", ".join(hit.lists),
        "score": round(hit.score, 3),
        "semantic": hit.why.ranks.get("semantic"),
        "fulltext": hit.why.ranks.get("fulltext"),
        "words": ", ".join(hit.why.words),
        "distance": hit.why.distance and round(hit.why.distance, 3),
        "thread_score": round(hit.why.thread_score, 3),
    }


def _place_row(rank: int, hit: Hit) -> dict[str, Cell]:
    first = hit.chunks[0] if hit.chunks else None
    return {
        "rank": rank,
        "message_id": hit.message_id,
        "text": " ".join(first.text.split())[:TEXT] if first else "",
        "spans": _spans(first.spans) if first else "",
        "highlights": _spans(first.highlights) if first else "",
        "chunks": ", ".join(chunk.key for chunk in hit.chunks),
        "attachments": ", ".join(hit.attachments),
        "copies": ", ".join(hit.copies),
        "in_thread": ", ".join(hit.in_thread),
        "thread_id": hit.thread_id,
    }


def _spans(spans: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"{start}-{end}" for start, end in spans)

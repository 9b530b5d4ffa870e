"""The op that serves test queries: everything of a response, as tables in the run's metadata.

A question is a job, not an asset: an asset would overwrite "the" answer and stand in the
lineage of the archive. What does not live here: what search answers (searcher.py).
"""

from collections.abc import Sequence
from typing import Any

import dagster as dg
from pydantic import Field

from mail_assets.defs.resources.search import SearchResource
from mail_assets.search.request import (
    GROUPS,
    MAX_LIMIT,
    MAX_OFFSET,
    MODES,
    Request,
    RequestError,
    parse_day,
)
from mail_assets.search.response import Hit, Response
from mail_assets.search.snippets import escape_markdown, snippet_markdown
from mail_assets.search.syntax import apply_query_filters

EXAMPLES = ["why do jobs run twice", "delete old rows without bloat"]

SNIPPET = 400  # characters of a chunk that are shown

Cell = str | int | float | bool | None


class TestQueries(dg.Config):
    """What to ask, and how."""

    __test__ = False  # not a test case, though pytest likes the name

    queries: list[str] = Field(
        default=EXAMPLES,
        description="questions, one search each; filters may stand in them: from: list: has:patch",
    )
    mode: str = Field(default="hybrid", description=f"one of {', '.join(MODES)}")
    limit: int = Field(default=5, ge=1, le=MAX_LIMIT, description="hits per query")
    offset: int = Field(default=0, ge=0, le=MAX_OFFSET, description="hits to pass over")
    min_score: float | None = Field(default=None, description="leave out hits that score less")
    group: str = Field(default="message", description=f"one of {', '.join(GROUPS)}")
    lists: list[str] = Field(default=[], description="only these lists; empty for all")
    after: str = Field(default="", description="from this day on: YYYY, YYYY-MM or YYYY-MM-DD")
    before: str = Field(default="", description="before this day")
    sender: str = Field(default="", description="an address, or a part of a name")


@dg.op
def serve_test_queries(
    context: dg.OpExecutionContext, config: TestQueries, search: SearchResource
) -> None:
    """Ask each query. Per query: the hits to read (`answer`), as a table (`hits`), where their text
    stands (`places`), what was looked for (`explain`); `searches` says where the time went.
    """
    requests = [_request(query, config) for query in config.queries]  # all, before one is asked
    with search.open() as searcher:
        responses = [searcher.search(request) for request in requests]
    for response in responses:
        context.log.info(f"{response.query!r}: {len(response.hits)} hits, {response.took_ms} ms")
    context.add_output_metadata(metadata_of(responses))


def metadata_of(responses: Sequence[Response]) -> dict[str, Any]:
    """Return responses as the UI shows them, numbered from 1 in the order asked: what is read
    first stands first, for the UI shows the beginning of long metadata.
    """
    numbered = [*enumerate(responses, 1)]
    metadata: dict[str, Any] = {"queries": len(responses)}
    metadata |= {f"answer_{n}": dg.MetadataValue.md(answer(one)) for n, one in numbered}
    searches = [dg.TableRecord(_search(n, one)) for n, one in numbered]
    metadata["searches"] = dg.MetadataValue.table(searches, SEARCHES)
    for n, one in numbered:
        hits = [dg.TableRecord(_hit(rank, hit)) for rank, hit in enumerate(one.hits, 1)]
        places = [dg.TableRecord(_place(rank, hit)) for rank, hit in enumerate(one.hits, 1)]
        metadata |= {
            f"hits_{n}": dg.MetadataValue.table(hits, HITS),
            f"places_{n}": dg.MetadataValue.table(places, PLACES),
            f"explain_{n}": dg.MetadataValue.json(dict(one.explain or {})),
        }
    return metadata


def answer(response: Response) -> str:
    """Return a response in Markdown: each hit with why it is one, and the lines that say so."""
    short = ", fewer than asked for" if response.short else ""
    head = (
        f"**{escape_markdown(response.query)}**\n\n{len(response.hits)} hits in "
        f"{response.took_ms} ms, {response.mode}{short}. "
        f"Again: {escape_markdown(response.permalink)}"
    )
    return "\n\n".join([head, *(_shown(rank, hit) for rank, hit in enumerate(response.hits, 1))])


SEARCHES = dg.TableSchema(
    [
        dg.TableColumn("number", "int"),
        dg.TableColumn("query", "string"),
        dg.TableColumn("mode", "string"),
        dg.TableColumn("hits", "int"),
        dg.TableColumn("short", "bool", "fewer than asked for"),
        dg.TableColumn("took_ms", "float"),
        dg.TableColumn("nearest_ms", "float", "model and vector index"),
        dg.TableColumn("fulltext_ms", "float", "full text, beside the former"),
        dg.TableColumn("chunks_ms", "float", "the messages of the nearest vectors"),
        dg.TableColumn("members_ms", "float", "the threads of the best"),
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
        dg.TableColumn("words", "string", "of the question, in the chunk that speaks"),
        dg.TableColumn("distance", "float", "cosine distance of the nearest chunk"),
        dg.TableColumn("thread_score", "float", "the part of the score its thread gave"),
    ]
)

PLACES = dg.TableSchema(
    [
        dg.TableColumn("rank", "int"),
        dg.TableColumn("message_id", "string"),
        dg.TableColumn("text", "string", "of the chunk that speaks for the message"),
        dg.TableColumn("spans", "string", "where it stands, in characters of the body"),
        dg.TableColumn("highlights", "string", "of the words in it, likewise"),
        dg.TableColumn("chunks", "string", "keys of the chunks shown, best first"),
        dg.TableColumn("attachments", "string"),
        dg.TableColumn("copies", "string", "near-duplicates folded into it"),
        dg.TableColumn("in_thread", "string", "further hits of its thread"),
        dg.TableColumn("thread_id", "string"),
    ]
)


def _request(query: str, config: TestQueries) -> Request:
    try:
        request = Request(
            query=query,
            mode=config.mode,
            limit=config.limit,
            offset=config.offset,
            min_score=config.min_score,
            group=config.group,
            lists=tuple(config.lists),
            after=parse_day(config.after) if config.after else None,
            before=parse_day(config.before) if config.before else None,
            sender=config.sender,
            explain=True,
        )
        apply_query_filters(request)
    except RequestError as error:
        raise dg.Failure(f"{query[:80]!r}: {error}", allow_retries=False) from None
    return request


def _search(number: int, response: Response) -> dict[str, Cell]:
    legs = (response.explain or {}).get("ms", {})
    return {
        "number": number,
        "query": response.query,
        "mode": response.mode,
        "hits": len(response.hits),
        "short": response.short,
        "took_ms": response.took_ms,
        **{f"{leg}_ms": legs.get(leg) for leg in ("nearest", "fulltext", "chunks", "members")},
        "again": response.permalink,
    }


def _hit(rank: int, hit: Hit) -> dict[str, Cell]:
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


def _place(rank: int, hit: Hit) -> dict[str, Cell]:
    first = hit.chunks[0] if hit.chunks else None
    return {
        "rank": rank,
        "message_id": hit.message_id,
        "text": " ".join(first.text.split())[:SNIPPET] if first else "",
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


def _shown(rank: int, hit: Hit) -> str:
    about = (hit.from_name or hit.from_email, hit.sent_at[:10], ", ".join(hit.lists))
    lines = [
        f"{rank}. **{escape_markdown(hit.subject).strip() or 'no subject'}**  ",
        f"{escape_markdown(', '.join(about))}; score {hit.score:.3f}: {escape_markdown(_why(hit))}",
    ]
    if hit.chunks:
        lines += ["", f"> {snippet_markdown(hit.chunks[0], SNIPPET)}"]
    return "\n    ".join(lines)


def _why(hit: Hit) -> str:
    ranks = (f"{leg} {rank}" for leg, rank in sorted(hit.why.ranks.items()))
    said = [*ranks] or ["its thread"]
    if hit.why.distance is not None:
        said.append(f"distance {hit.why.distance:.3f}")
    if hit.why.thread_score:
        said.append(f"thread {hit.why.thread_score:.3f}")
    if hit.why.words:
        said.append(f"words {', '.join(hit.why.words)}")
    return ", ".join(said)

"""The job `test_queries`: asks the live index and shows the hits in the metadata of the run.

It is not an asset, because an asset would overwrite the last answer and be part of the lineage.

Answers are the only mail in Dagster's event log. `forget` and `prune` delete their runs
(pruning.py).
"""

from collections.abc import Iterable, Sequence
from typing import Any

import dagster as dg
from pydantic import Field

from mail_assets.defs.resources import SearchResource
from mail_assets.search.language.fields import parse_day
from mail_assets.search.language.request import (
    MAX_LIMIT,
    MAX_OFFSET,
    Group,
    Mode,
    Request,
    RequestError,
    Sort,
)
from mail_assets.search.language.syntax import parse_request
from mail_assets.search.response import (
    SHORTEST,
    Conversation,
    Hit,
    Response,
    cut_beginning,
    escape_markdown,
    name_people,
    render_snippet_markdown,
)
from mail_assets.text.untrusted import clean_line

EXAMPLES = ["why do jobs run twice", "delete old rows without bloat"]


class TestQueries(dg.Config):
    """Run configuration of serve_test_queries."""

    queries: list[str] = Field(
        default=EXAMPLES, description="each is one search; may contain from:, list:, has:patch"
    )
    mode: Mode = Field(default=Mode.hybrid, description="which indexes are asked")
    limit: int = Field(default=5, ge=1, le=MAX_LIMIT, description="rows per query")
    offset: int = Field(default=0, ge=0, le=MAX_OFFSET, description="rows to skip")
    min_score: float | None = Field(default=None, description="leave out hits with a lower score")
    group: Group = Field(
        default=Group.conversation, description="rows: conversations or single messages"
    )
    sort: Sort = Field(default=Sort.relevance, description="the best, newest or oldest first")
    lists: list[str] = Field(default=[], description="only these lists; empty: all")
    after: str = Field(default="", description="sent from this day on: YYYY[-MM[-DD]]")
    before: str = Field(default="", description="sent before this day")
    sender: str = Field(default="", description="an address, or part of a name or address")


@dg.op
def serve_test_queries(
    context: dg.OpExecutionContext, config: TestQueries, search: SearchResource
) -> None:
    """Ask each query. The metadata of the output has tables with the `hits` of all queries and
    their `details`: figures, message ids and positions of their text. For each query it has the
    hits as text (`answer`), and the parsed query with the time it took (`explain`). The log also
    has the hits.
    """
    # check all queries before the first one is asked
    requests = [_request(query, config) for query in config.queries]
    with search.open() as searcher:
        responses = [searcher.search(request) for request in requests]
    for response in responses:
        context.log.info(answer_text(response))
    context.add_output_metadata(response_metadata(responses))


def _request(query: str, config: TestQueries) -> Request:
    try:
        request = Request(
            query=query,
            mode=config.mode.value,
            limit=config.limit,
            offset=config.offset,
            min_score=config.min_score,
            group=config.group.value,
            sort=config.sort.value,
            lists=tuple(config.lists),
            after=parse_day(config.after) if config.after else None,
            before=parse_day(config.before) if config.before else None,
            sender=config.sender,
            explain=True,
        )
        parse_request(request)
    except RequestError as error:
        raise dg.Failure(f"{query[:80]!r}: {error}", allow_retries=False) from None
    return request


@dg.job(
    description="Ask the live index test queries. The hits are in the metadata of the op until "
    "`mail-assets forget` or `mail-assets prune` deletes the run."
)
def test_queries() -> None:
    """Ask test queries."""
    serve_test_queries()


def response_metadata(responses: Sequence[Response]) -> dict[str, Any]:
    """Return responses as metadata, numbered from 1 in the order of the queries.

    The table of hits comes first, because the UI shows tables at once, and texts after a click.
    """
    numbered = [*enumerate(responses, 1)]
    found = [(one.query, rank, hit) for one in responses for rank, hit in enumerate(one.hits, 1)]
    metadata: dict[str, Any] = {"hits": _table(HITS, (_hit_row(*row) for row in found))}
    metadata |= {f"answer_{n}": dg.MetadataValue.md(answer_markdown(one)) for n, one in numbered}
    metadata["details"] = _table(DETAILS, (_detail_row(*row) for row in found))
    explained = {f"explain_{n}": dict(one.explain or {}) for n, one in numbered}
    return metadata | {name: dg.MetadataValue.json(said) for name, said in explained.items()}


#: Most characters of a chunk that are shown in an answer, and in the table of hits.
SNIPPET, SHOWN = 400, 160


def answer_text(response: Response) -> str:
    """Return a response as lines for the log: the query, and two lines for each hit."""
    lines = [f"{response.query!r}: {len(response.hits)} hits, {response.took_ms} ms"]
    for rank, hit in enumerate(response.hits, 1):
        about = (hit.from_name or hit.from_email, hit.sent_at[:10], ", ".join(hit.lists))
        named = f"{hit.subject or 'no subject'} ({', '.join(about)})"
        lines.append(f"{rank:2}. {clean_line(named)}")
        if hit.chunks:
            lines.append(f"    {clean_line(_shorten(hit.chunks[0].text))}")
    return "\n".join(lines)


def answer_markdown(response: Response) -> str:
    """Return a response in Markdown, headed by its query."""
    short = ", fewer than asked for" if response.short else ""
    rows = response.conversations
    of = f" of {len(rows)} conversations" if rows else ""
    head = (
        f"**{escape_markdown(response.query)}**\n\n{len(response.hits)} hits{of} in "
        f"{response.took_ms} ms, {response.mode}{short}. "
        f"Again: {escape_markdown(response.permalink)}"
    )
    head += "".join(f"\n\n{escape_markdown(note)}" for note in response.notes)
    hits = {hit.message_id: hit for hit in response.hits}
    blocks = [
        _conversation_markdown(rank, one, [hits[id] for id in one.best])
        for rank, one in enumerate(rows, 1)
    ]
    if not rows:
        blocks = [_hit_markdown(f"{rank}.", hit) for rank, hit in enumerate(response.hits, 1)]
    return "\n\n".join([head, *blocks])


def _conversation_markdown(rank: int, one: Conversation, hits: Sequence[Hit]) -> str:
    days = " to ".join(dict.fromkeys((one.first_sent_at[:10], one.last_sent_at[:10])))
    people = name_people(one.names, one.people)
    about = f"{days}, {one.messages} messages, {', '.join(one.lists)}; {people}"
    lines = [
        f"{rank}. **{escape_markdown(one.subject).strip() or 'no subject'}**  ",
        escape_markdown(about),
    ]
    if one.first and one.first.message_id not in one.best:
        sender = one.first.from_name or one.first.from_email
        text = cut_beginning(one.first.text, SHORTEST)
        mark = " **Contested**" if one.first.contested else ""
        lines += ["", f"* first: {escape_markdown(f'{sender}, {one.first.sent_at[:10]}')}{mark}"]
        lines += ["", f"    > {escape_markdown(text)}"] if text else []
    for hit in hits:
        lines += ["", *_hit_markdown("*", hit).split("\n")]
    if one.more:
        lines += ["", f"{one.more} more found in it"]
    return "\n    ".join(lines)


def _hit_markdown(mark: str, hit: Hit) -> str:
    about = (hit.from_name or hit.from_email, hit.sent_at[:10], ", ".join(hit.lists))
    score = "" if hit.why.found_by == "date" else f"score {hit.score:.3f}: "
    why = "; ".join(hit.why.reasons())
    lines = [
        f"{mark} **{escape_markdown(hit.subject).strip() or 'no subject'}**  ",
        f"{escape_markdown(', '.join(about))}; {score}{escape_markdown(why)}",
    ]
    if hit.contested:
        lines[-1] += f"  \n    **Contested:** several texts claim its id; this is text {hit.text}"
    if newer := hit.newer_copy:
        lines[-1] += "  "
        lines.append(escape_markdown(f"newer: {newer.sent_at[:10]}, {newer.subject}"))
    if hit.chunks:
        lines += ["", f"> {render_snippet_markdown(hit.chunks[0], SNIPPET)}"]
    return "\n    ".join(lines)


Cell = str | int | float | bool | None

HITS = dg.TableSchema(
    [
        dg.TableColumn("query", "string"),
        dg.TableColumn("rank", "int"),
        dg.TableColumn("subject", "string"),
        dg.TableColumn("sender", "string"),
        dg.TableColumn("date", "string"),
        dg.TableColumn("lists", "string"),
        dg.TableColumn("text", "string", "of the best chunk"),
    ]
)

DETAILS = dg.TableSchema(
    [
        dg.TableColumn("query", "string"),
        dg.TableColumn("rank", "int"),
        dg.TableColumn("message_id", "string"),
        dg.TableColumn("thread_id", "string"),
        dg.TableColumn("score", "float"),
        dg.TableColumn("semantic", "int", "rank in the semantic leg"),
        dg.TableColumn("fulltext", "int", "rank in the full-text leg"),
        dg.TableColumn("words", "string", "of the query, in its subject and chunks"),
        dg.TableColumn("distance", "float", "cosine distance of the nearest chunk"),
        dg.TableColumn("thread_score", "float", "part of the score that comes from its thread"),
        dg.TableColumn("spans", "string", "characters of the body that are the best chunk"),
        dg.TableColumn("highlights", "string", "characters of the body that are words asked for"),
        dg.TableColumn("chunks", "string", "keys of the chunks shown, best first"),
        dg.TableColumn("copies", "string", "near-duplicates folded into it"),
        dg.TableColumn("contested", "bool", "other texts claim its id"),
    ]
)


def _table(schema: dg.TableSchema, rows: Iterable[dict[str, Cell]]) -> dg.TableMetadataValue:
    return dg.MetadataValue.table([*map(dg.TableRecord, rows)], schema)


def _hit_row(query: str, rank: int, hit: Hit) -> dict[str, Cell]:
    return {
        "query": query,
        "rank": rank,
        "subject": hit.subject,
        "sender": hit.from_name or hit.from_email,
        "date": hit.sent_at[:10],
        "lists": ", ".join(hit.lists),
        "text": _shorten(hit.chunks[0].text) if hit.chunks else "",
    }


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN].rpartition(' ')[0] or line[:SHOWN]} ..."


def _detail_row(query: str, rank: int, hit: Hit) -> dict[str, Cell]:
    first = hit.chunks[0] if hit.chunks else None
    return {
        "query": query,
        "rank": rank,
        "message_id": hit.message_id,
        "thread_id": hit.thread_id,
        "score": round(hit.score, 3),
        "semantic": hit.why.ranks.get("semantic"),
        "fulltext": hit.why.ranks.get("fulltext"),
        "words": ", ".join(hit.why.words),
        "distance": hit.why.distance and round(hit.why.distance, 3),
        "thread_score": round(hit.why.thread_score, 3),
        "spans": _spans(first.spans) if first else "",
        "highlights": _spans(first.highlights) if first else "",
        "chunks": ", ".join(chunk.key for chunk in hit.chunks),
        "copies": ", ".join(hit.copies),
        "contested": hit.contested,
    }


def _spans(spans: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"{start}-{end}" for start, end in spans)

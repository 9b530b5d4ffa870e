"""The op that serves test queries: hits as tables in the run's metadata.

A question is a job, not an asset: an asset would overwrite "the" answer and stand in the
lineage of the archive.
"""

from typing import Any

import dagster as dg
from pydantic import Field

from mail_assets.resources.search import SearchResource
from mail_assets.search.request import MAX_LIMIT, MODES, Request, parse_day
from mail_assets.search.response import Hit, Response

EXAMPLES = ["why do jobs run twice", "delete old rows without bloat"]


class TestQueries(dg.Config):
    """What to ask, and how."""

    __test__ = False  # not a test case, though pytest likes the name

    queries: list[str] = Field(default=EXAMPLES, description="questions, one search each")
    mode: str = Field(default="hybrid", description=f"one of {', '.join(MODES)}")
    limit: int = Field(default=5, ge=1, le=MAX_LIMIT, description="hits per query")
    lists: list[str] = Field(default=[], description="only these lists; empty for all")
    after: str = Field(default="", description="from this day on: YYYY, YYYY-MM or YYYY-MM-DD")
    before: str = Field(default="", description="before this day")
    sender: str = Field(default="", description="an address, or a part of a name")


@dg.op
def serve_test_queries(
    context: dg.OpExecutionContext, config: TestQueries, search: SearchResource
) -> None:
    """Ask each query and show its hits as a table, best first."""
    requests = [
        Request(
            query=query,
            mode=config.mode,
            limit=config.limit,
            lists=tuple(config.lists),
            after=parse_day(config.after) if config.after else None,
            before=parse_day(config.before) if config.before else None,
            sender=config.sender,
        )
        for query in config.queries
    ]
    with search.open() as searcher:
        responses = [searcher.search(request) for request in requests]
    metadata: dict[str, Any] = {"mode": config.mode, "queries": len(responses)}
    for number, response in enumerate(responses, 1):
        context.log.info(f"{response.query!r}: {len(response.hits)} hits, {response.took_ms} ms")
        metadata[f"hits_{number}"] = dg.MetadataValue.table(_records(response), SCHEMA)
        metadata[f"query_{number}"] = response.query
        metadata[f"took_ms_{number}"] = response.took_ms
    context.add_output_metadata(metadata)


SCHEMA = dg.TableSchema(
    [
        dg.TableColumn("rank", "int"),
        dg.TableColumn("score", "float"),
        dg.TableColumn("subject", "string"),
        dg.TableColumn("sender", "string"),
        dg.TableColumn("sent_at", "string"),
        dg.TableColumn("lists", "string"),
        dg.TableColumn("text", "string", "the chunk that speaks for the message"),
        dg.TableColumn("message_id", "string"),
    ]
)


def _records(response: Response) -> list[dg.TableRecord]:
    return [dg.TableRecord(_record(rank, hit)) for rank, hit in enumerate(response.hits, 1)]


def _record(rank: int, hit: Hit) -> dict[str, str | int | float]:
    return {
        "rank": rank,
        "score": hit.score,
        "subject": hit.subject,
        "sender": hit.from_name or hit.from_email,
        "sent_at": hit.sent_at,
        "lists": ", ".join(hit.lists),
        "text": " ".join(hit.chunks[0].text.split())[:300] if hit.chunks else "",
        "message_id": hit.message_id,
    }

"""The op that asks test queries.

A query is no asset: an asset would overwrite the last answer and be part of the lineage.
"""

import dagster as dg
from pydantic import Field

from mail_assets.defs.queries.metadata import response_metadata
from mail_assets.defs.resources.search import SearchResource
from mail_assets.search.dates import parse_day
from mail_assets.search.request import MAX_LIMIT, MAX_OFFSET, Group, Mode, Request, RequestError
from mail_assets.search.syntax import parse_request

EXAMPLES = ["why do jobs run twice", "delete old rows without bloat"]


class TestQueries(dg.Config):
    """Run configuration of serve_test_queries."""

    __test__ = False  # not a test case, though pytest likes the name

    queries: list[str] = Field(
        default=EXAMPLES,
        description="one search each; filters may be written in them: from: list: has:patch",
    )
    mode: Mode = Field(default=Mode.hybrid, description="how messages are found")
    limit: int = Field(default=5, ge=1, le=MAX_LIMIT, description="hits per query")
    offset: int = Field(default=0, ge=0, le=MAX_OFFSET, description="hits to skip")
    min_score: float | None = Field(default=None, description="leave out hits with a lower score")
    group: Group = Field(default=Group.few, description="how many hits a thread has")
    lists: list[str] = Field(default=[], description="only these lists; empty for all")
    after: str = Field(default="", description="sent from this day on: YYYY[-MM[-DD]]")
    before: str = Field(default="", description="sent before this day")
    sender: str = Field(default="", description="an address, or a part of a name or address")


@dg.op
def serve_test_queries(
    context: dg.OpExecutionContext, config: TestQueries, search: SearchResource
) -> None:
    """Ask each query. The metadata of the output has for each: the hits to read (`answer`) and as a
    table (`hits`), their message ids and the places of their text (`places`), and how the query was
    understood (`explain`); `searches` says where the time went.
    """
    requests = [_request(query, config) for query in config.queries]  # all, before one is asked
    with search.open() as searcher:
        responses = [searcher.search(request) for request in requests]
    for response in responses:
        context.log.info(f"{response.query!r}: {len(response.hits)} hits, {response.took_ms} ms")
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

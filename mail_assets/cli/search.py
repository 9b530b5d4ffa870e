"""search: one question, or a file of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mail_assets.cli.console import answer_json, known_lists, say, searcher_of, with_settings
from mail_assets.settings import Settings

if TYPE_CHECKING:
    from mail_assets.search.request import Request
    from mail_assets.search.response import Response

SNIPPET = 240  # characters of a chunk shown to people


@click.command()
@click.argument("query", required=False)
@click.option(
    "--queries",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='A file with one {"_id", "text"} a line; prints one JSON result a line.',
)
@click.option("--mode", default="hybrid", show_default=True, help="hybrid, semantic or fulltext.")
@click.option("--limit", default=10, show_default=True, help="How many messages.")
@click.option("--list", "lists", multiple=True, metavar="LIST", help="Only this list; repeatable.")
@click.option("--after", metavar="DAY", help="From this day on: YYYY, YYYY-MM or YYYY-MM-DD.")
@click.option("--before", metavar="DAY", help="Before this day.")
@click.option("--sender", default="", help="An address, or a part of a name or address.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@with_settings
def search(
    settings: Settings,
    query: str | None,
    queries: Path | None,
    lists: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Ask the archive a question, in your own words or by an identifier.

    Full text reads "quoted words" as a phrase, `or` between alternatives, and -word as one
    that must be absent; a query that begins with a dash stands behind `--`.
    """
    if (query is None) == (queries is None):
        raise click.UsageError("give either a QUERY or --queries FILE")
    if lists:
        known_lists(settings, lists)
    requests = (
        [_request("", query or "", lists, options)]
        if queries is None
        else _requests(queries, lists, options)
    )

    with searcher_of(settings) as searcher:
        for request in requests:
            response = searcher.search(request)
            if as_json or queries:
                answer_json(response.as_json())
            else:
                _print_hits(response)


def _requests(file: Path, lists: tuple[str, ...], options: dict[str, Any]) -> "list[Request]":
    """Read all queries before the first is answered: a bad line stops everything."""
    from mail_assets.search.judged import read_queries
    from mail_assets.search.request import RequestError

    requests = []
    for number, query_id, text in read_queries(file):
        try:
            requests.append(_request(query_id, text, lists, options))
        except RequestError as error:
            raise RequestError(f"{file}, line {number}: {error}") from None
    return requests


def _request(
    query_id: str, query: str, lists: tuple[str, ...], options: dict[str, Any]
) -> "Request":
    from mail_assets.search.request import Request, parse_day

    return Request(
        query=query,
        mode=options["mode"],
        limit=options["limit"],
        lists=lists,
        after=parse_day(options["after"]) if options["after"] else None,
        before=parse_day(options["before"]) if options["before"] else None,
        sender=options["sender"],
        query_id=query_id,
    )


def _print_hits(response: "Response") -> None:
    for number, hit in enumerate(response.hits, 1):
        who = hit.from_name or hit.from_email
        click.secho(f"{number:>2}. {hit.subject}", bold=True)
        click.echo(f"    {who}, {hit.sent_at[:10]}, {', '.join(hit.lists)}, {hit.score:.3f}")
        click.echo(f"    <{hit.message_id}>")
        if hit.chunks:
            text = " ".join(hit.chunks[0].text.split())
            click.echo(f"    {text[:SNIPPET]}{'...' if len(text) > SNIPPET else ''}")
    say(f"{len(response.hits)} hits in {response.took_ms:.0f} ms ({response.mode})")

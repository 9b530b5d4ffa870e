"""search, similar: one query or a file of them; messages near in meaning to one message."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mail_assets.cli.command import (
    examples,
    filter_options,
    hand_over,
    json_option,
    pass_settings,
    print_json,
    read_filters,
    read_message_id,
    select_published,
)
from mail_assets.cli.hits import print_response
from mail_assets.search.language.description import describe_shortly
from mail_assets.settings.settings import Settings

if TYPE_CHECKING:
    from mail_assets.search.language.request import Request


#: \b: click keeps the lines of the language as they are
HELP = f"""Search the archive, by words or by meaning.

\b
{describe_shortly(78)}

A pasted Message-ID finds that message. Put `--` before a query that begins with a dash.
"""


class _QueryCommand(click.Command):
    """A command whose first argument may begin with a dash."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; an unknown option may be a query."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            said = f"{error.format_message()} Put -- before a query that begins with a dash."
            raise click.UsageError(said, ctx) from None


@click.command(
    cls=_QueryCommand,
    help=HELP,
    epilog=examples(
        "mail-assets search 'why do jobs run twice after a worker pauses'",
        "mail-assets search 'from:ingrid upgrade' --list harbor-users --after 2024-03",
    ),
)
@click.argument("query", required=False)
@click.option(
    "--queries",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='A file with one {"_id", "text"} a line; prints one JSON result a line.',
)
@click.option("--mode", default="hybrid", show_default=True, help="hybrid, semantic or fulltext.")
@click.option("--limit", default=10, show_default=True, help="How many conversations.")
@filter_options
@click.option("--offset", default=0, show_default=True, help="How many conversations to skip.")
@click.option("--min-score", type=float, help="Leave out hits that score less.")
@click.option(
    "--group",
    default="conversation",
    show_default=True,
    help="Rows: conversation (a thread with its best messages), or message (each by itself).",
)
@click.option("--near", default="", help="The message or thread at hand: its subject joins in.")
@click.option("--sort", default="relevance", show_default=True, help="relevance, newest or oldest.")
@click.option("--facets", is_flag=True, help="Count what matches by list, year, author and kind.")
@click.option(
    "--explain",
    is_flag=True,
    help="Print how the query was understood, why each hit is one, and the search as one string.",
)
@json_option
@pass_settings
def search(
    settings: Settings,
    query: str | None,
    queries: Path | None,
    lists: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Search the archive; the help is HELP."""
    if (query is None) == (queries is None):
        raise click.UsageError("give either a QUERY or --queries FILE")
    if lists:
        select_published(settings, lists)
    if queries is None:
        requests = [_request("", query or "", lists, options)]
    hand_over()
    if queries is not None:
        requests = _requests(queries, lists, options)

    from mail_assets.search.open import open_searcher

    with open_searcher(settings.search) as searcher:
        for request in requests:
            response = searcher.search(request)
            if as_json or queries:
                print_json(response.as_json())
            else:
                print_response(response)


def _requests(file: Path, lists: tuple[str, ...], options: dict[str, Any]) -> "list[Request]":
    """Read all queries before the first is answered: a bad line stops everything."""
    from mail_assets.evaluation.judged import read_queries
    from mail_assets.search.language.request import RequestError

    requests = []
    for number, one in read_queries(file):
        try:
            requests.append(_request(one.query_id, one.text, lists, options))
        except RequestError as error:
            raise RequestError(f"{file}, line {number}: {error}") from None
    return requests


def _request(
    query_id: str, query: str, lists: tuple[str, ...], options: dict[str, Any]
) -> "Request":
    from mail_assets.search.language.request import Request
    from mail_assets.search.language.syntax import parse_request

    request = Request(
        query=query,
        mode=options["mode"],
        limit=options["limit"],
        offset=options["offset"],
        min_score=options["min_score"],
        group=options["group"],
        sort=options["sort"],
        near=options["near"],
        facets=options["facets"],
        explain=options["explain"],
        **read_filters(lists, options),
        query_id=query_id,
    )
    parse_request(request)  # a wrong filter stops here, before anything is opened
    return request


@click.command(epilog=examples("mail-assets similar 20240304090533.GE9223@solheim.example.org"))
@click.argument("message_id")
@click.option("--limit", default=10, show_default=True, help="How many messages.")
@json_option
@pass_settings
def similar(settings: Settings, message_id: str, limit: int, as_json: bool) -> None:
    """Show the messages nearest in meaning to one message."""
    wanted = read_message_id(message_id)
    hand_over()

    from mail_assets.search.open import open_searcher

    with open_searcher(settings.search) as searcher:
        response = searcher.similar(wanted, limit)
    if as_json:
        print_json(response.as_json())
    else:
        print_response(response)

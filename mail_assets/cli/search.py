"""search: one question, or a file of them; similar: what is like a message."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mail_assets.cli.console import answer_json, known_lists, say, searcher_of, with_settings
from mail_assets.cli.filters import filter_options
from mail_assets.settings.environment import Settings

if TYPE_CHECKING:
    from mail_assets.search.request import Request
    from mail_assets.search.response import ChunkHit, Hit, Response

SNIPPET = 240  # characters of a chunk shown to people
MORE = 5  # ids of near-duplicates, or of a thread, shown to people


@click.command()
@click.argument("query", required=False)
@click.option(
    "--queries",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='A file with one {"_id", "text"} a line; prints one JSON result a line.',
)
@click.option("--mode", default="hybrid", show_default=True, help="hybrid, semantic or fulltext.")
@click.option("--limit", default=10, show_default=True, help="How many messages.")
@filter_options
@click.option("--offset", default=0, show_default=True, help="How many messages to pass over.")
@click.option("--min-score", type=float, help="Leave out hits that score less.")
@click.option("--group", default="message", show_default=True, help="message or thread.")
@click.option("--explain", is_flag=True, help="Say why each hit is one, and the search again.")
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

    "Quoted words" are a phrase that every hit holds, `or` stands between alternatives, -word
    must be absent. Filters may stand in the query: from: to: list: subject: thread: month:
    after: before: file: has:patch has:attachment is:reply is:first. A pasted Message-ID finds
    that message. A query that begins with a dash stands behind `--`.
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


@click.command()
@click.argument("message_id")
@click.option("--limit", default=10, show_default=True, help="How many messages.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@with_settings
def similar(settings: Settings, message_id: str, limit: int, as_json: bool) -> None:
    """Show the messages whose meaning is nearest to that of one message."""
    with searcher_of(settings) as searcher:
        response = searcher.similar(message_id, limit)
    if as_json:
        answer_json(response.as_json())
    else:
        _print_hits(response)


def _requests(file: Path, lists: tuple[str, ...], options: dict[str, Any]) -> "list[Request]":
    """Read all queries before the first is answered: a bad line stops everything."""
    from mail_assets.evaluation.judged import read_queries
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
    from mail_assets.search.syntax import apply_query_filters

    request = Request(
        query=query,
        mode=options["mode"],
        limit=options["limit"],
        offset=options["offset"],
        min_score=options["min_score"],
        group=options["group"],
        explain=options["explain"],
        lists=lists,
        after=parse_day(options["after"]) if options["after"] else None,
        before=parse_day(options["before"]) if options["before"] else None,
        sender=options["sender"],
        query_id=query_id,
    )
    apply_query_filters(request)  # a wrong filter stops here, before anything is opened
    return request


def _print_hits(response: "Response") -> None:
    for number, hit in enumerate(response.hits, 1):
        who = hit.from_name or hit.from_email
        click.secho(f"{number:>2}. {hit.subject}", bold=True)
        click.echo(f"    {who}, {hit.sent_at[:10]}, {', '.join(hit.lists)}, {hit.score:.3f}")
        click.echo(f"    <{hit.message_id}>")
        if hit.chunks:
            click.echo(f"    {_snippet(hit.chunks[0])}")
        if hit.attachments:
            click.echo(f"    attached: {', '.join(hit.attachments)}")
        for name, others in (("also as", hit.copies), ("in its thread", hit.in_thread)):
            if others:
                click.echo(f"    {name}: {', '.join(f'<{one}>' for one in others[:MORE])}")
        if response.explain is not None:
            click.echo(f"    {_why(hit)}")
    say(f"{len(response.hits)} hits in {response.took_ms:.0f} ms ({response.mode})")
    if response.explain is not None:
        say(f"again: mail-assets search {shlex.quote(response.permalink)}")
        for name, value in response.explain.items():
            say(f"{name}: {json.dumps(value, ensure_ascii=False)}")


def _snippet(chunk: "ChunkHit") -> str:
    """Return a snippet of a chunk on one line, its highlights marked."""
    from mail_assets.search.snippets import cut_snippet

    shown = (
        click.style(text, bold=True, underline=True) if marked else text
        for text, marked in cut_snippet(chunk, SNIPPET)
    )
    return " ".join("".join(shown).split())


def _why(hit: "Hit") -> str:
    ranks = ", ".join(f"{name} {rank}" for name, rank in sorted(hit.why.ranks.items()))
    distance = "" if hit.why.distance is None else f"; distance {hit.why.distance:.3f}"
    words = f"; words {', '.join(hit.why.words)}" if hit.why.words else ""
    thread = f"; thread {hit.why.thread_score:.3f}" if hit.why.thread_score else ""
    return f"why: {ranks or 'its thread'}{distance}{words}{thread}"

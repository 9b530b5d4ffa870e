"""The commands `search`, for a query or a file of queries, and `similar`, for a message.

Hits are printed as conversations, or one by one.
"""

import json
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mail_assets.cli.command import (
    examples,
    filter_options,
    hand_over,
    json_option,
    name_apart,
    pass_settings,
    plural,
    print_json,
    print_note,
    printable,
    printable_line,
    read_filters,
    read_message_id,
    select_published,
)
from mail_assets.errors import name_some
from mail_assets.search.language.description import describe_shortly
from mail_assets.settings.settings import Settings
from mail_assets.text.lookalikes import find_lookalikes

if TYPE_CHECKING:
    from mail_assets.search.language.request import Request
    from mail_assets.search.response import (
        ChunkHit,
        Conversation,
        Facets,
        FirstMessage,
        Hit,
        Response,
    )

#: Most ids of near-duplicates that are printed.
MAX_IDS = 5

#: \b: click keeps the lines of the language as they are
HELP = f"""Search the archive, by words or by meaning.

\b
{describe_shortly(78)}

A pasted Message-ID finds that message. Put `--` before a query that begins with a dash.
"""


class _QueryCommand(click.Command):
    """A command whose first argument may begin with a dash."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
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
    help='A file with one {"_id", "text"} per line; prints one JSON result per line.',
)
@click.option("--mode", default="hybrid", show_default=True, help="hybrid, semantic or fulltext.")
@click.option("--limit", default=10, show_default=True, help="Number of conversations.")
@filter_options
@click.option("--offset", default=0, show_default=True, help="Number of conversations to skip.")
@click.option("--min-score", type=float, help="Leave out hits that score less.")
@click.option(
    "--group",
    default="conversation",
    show_default=True,
    help="Rows: conversation (a thread with its best messages), or message (single messages).",
)
@click.option(
    "--near", default="", help="Id of a message or thread; its subject is added to the query."
)
@click.option("--sort", default="relevance", show_default=True, help="relevance, newest or oldest.")
@click.option("--facets", is_flag=True, help="Count what matches by list, year, author and kind.")
@click.option(
    "--explain",
    is_flag=True,
    help="Print how the query was understood, why each hit was found, and the search as a string.",
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
    """Search the archive; `--help` prints HELP instead of this line."""
    if (query is None) == (queries is None):
        raise click.UsageError("give either a QUERY or --queries FILE")
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
    """Read all queries of a file, so that a bad line is refused before the first is answered."""
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
@click.option("--limit", default=10, show_default=True, help="Number of messages.")
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


def print_response(response: "Response") -> None:
    """Print conversations or single hits, with explanations if any; the time on standard error."""
    explain = dict(response.explain or {})
    if query := explain.pop("query", ""):
        click.echo(f"query: {printable_line(query)}")
    for note in response.notes:
        print_note(printable_line(note))
    why = response.explain is not None
    hits = {hit.message_id: hit for hit in response.hits}
    shown: list[Hit | FirstMessage] = [*response.hits]
    shown += [one.first for one in response.conversations if one.first]
    alike = find_lookalikes((one.from_name, one.from_email.lower()) for one in shown)
    for number, one in enumerate(response.conversations, 1):
        _print_conversation(number, one, [hits[id] for id in one.best], alike, why=why)
    if not response.conversations:
        for number, hit in enumerate(response.hits, 1):
            _print_hit(number, hit, alike, why=why)
    if response.facets:
        _print_facets(response.facets)
    found = plural(len(response.hits), "hit")
    if response.conversations:
        found += f" of {plural(len(response.conversations), 'conversation')}"
    print_note(f"{found} in {response.took_ms:.0f} ms ({response.mode})")
    if response.explain is not None:
        print_note(f"again: mail-assets search {shlex.quote(response.permalink)}")
        for name, value in explain.items():
            print_note(f"{name}: {json.dumps(value, ensure_ascii=False)}")


def _print_facets(facets: "Facets") -> None:
    more = "at least " if facets.at_least else ""
    click.echo(f"matching: {more}{plural(facets.total, 'message')}")
    for name in ("lists", "years", "authors", "kinds"):
        counts = getattr(facets, name)
        if counts:
            said = ", ".join(f"{printable_line(value)} {count}" for value, count in counts.items())
            click.echo(f"    {name}: {said}")


def _print_conversation(
    number: int, one: "Conversation", hits: Sequence["Hit"], alike: Collection[str], *, why: bool
) -> None:
    from mail_assets.mail.message.subjects import base_subject
    from mail_assets.search.response import SHORTEST, cut_beginning, name_people

    subject = printable_line(one.subject) or "(no subject)"
    days = dict.fromkeys((one.first_sent_at[:10], one.last_sent_at[:10]))
    people = printable_line(name_people(one.names, one.people))
    click.echo(click.style(f"{number:>2}. {subject}", bold=True))
    size = plural(one.messages, "message")
    click.echo(f"    {' to '.join(days)}, {size}, {', '.join(one.lists)}; {people}")
    first = one.first
    if first and first.message_id not in one.best:
        _print_message("first", first, alike)
        if first.contested:
            click.echo("      contested: several texts claim this Message-ID")
        if text := cut_beginning(printable(first.text), SHORTEST):
            click.echo(f"      {text}")
    for hit in hits:
        is_first = first is not None and first.message_id == hit.message_id
        score = "" if hit.why.found_by == "date" else f", {hit.score:.3f}"
        role = "first" if is_first else "found"
        _print_message(role, hit, alike, score)
        if base_subject(hit.subject) != one.subject:
            click.echo(f"      {_title(hit)}")
        _print_about(hit, "      ", why=why)
    if one.more:
        click.echo(f"    {one.more} more found in it: thread:{printable_line(one.thread_id or '')}")


def _print_message(
    role: str, message: "Hit | FirstMessage", alike: Collection[str], score: str = ""
) -> None:
    name, id = name_apart(message, alike), printable_line(message.message_id)
    click.echo(f"    {role}: {name}, {message.sent_at[:10]}{score} <{id}>")


def _print_hit(number: int, hit: "Hit", alike: Collection[str], *, why: bool) -> None:
    author = name_apart(hit, alike)
    click.echo(click.style(f"{number:>2}. ", bold=True) + _title(hit))
    score = "" if hit.why.found_by == "date" else f", {hit.score:.3f}"
    click.echo(f"    {author}, {hit.sent_at[:10]}, {', '.join(hit.lists)}{score}")
    click.echo(f"    <{printable_line(hit.message_id)}>")
    _print_about(hit, "    ", why=why)


def _print_about(hit: "Hit", indent: str, *, why: bool) -> None:
    if hit.contested:
        which = "arrived first" if hit.text == 1 else f"is text {hit.text}, and came later"
        click.echo(f"{indent}contested: several texts claim this Message-ID; this one {which}")
    if hit.chunks:
        click.echo(f"{indent}{_snippet(hit.chunks[0])}")
    if hit.attachments:
        click.echo(f"{indent}attached: {printable_line(', '.join(hit.attachments))}")
    if hit.patch:
        click.echo(f"{indent}patch: {printable_line(hit.patch.words)}")
    if hit.other_versions:
        click.echo(f"{indent}instead of: {_list_ids(hit.other_versions)}")
    if hit.best_version:
        click.echo(f"{indent}better match: {_list_ids([hit.best_version])}")
    if newer := hit.newer_copy:
        about = f"{newer.sent_at[:10]}, {printable_line(newer.subject)}"
        click.echo(f"{indent}newer: {about} <{printable_line(newer.message_id)}>")
    if hit.copies:
        click.echo(f"{indent}also as: {_list_ids(hit.copies)}")
    if why:
        click.echo(f"{indent}why: {'; '.join(hit.why.reasons())}")


def _list_ids(ids: Sequence[str]) -> str:
    return name_some((f"<{printable_line(one)}>" for one in ids), MAX_IDS)


def _title(hit: "Hit") -> str:
    from mail_assets.search.response import mark_spans

    pieces = mark_spans(hit.subject, hit.subject_highlights)
    shown = (click.style(printable(text), bold=True, underline=marked) for text, marked in pieces)
    return " ".join("".join(shown).split())


def _snippet(chunk: "ChunkHit") -> str:
    from mail_assets.search.response import SHORTEST, cut_snippet

    pieces = []
    for text, marked in cut_snippet(chunk, SHORTEST):
        text = printable(text)
        pieces.append(click.style(text, bold=True, underline=True) if marked else text)
    return " ".join("".join(pieces).split())

"""The command line, `mail-assets`: one function per command.

Standard output carries the answer and nothing else; everything said beside it goes to
standard error. Exit codes: 0 done, 1 it failed or there is nothing of that name, 2 a wrong
argument or setting. Commands import what they need: `search` must not wait for Dagster.
"""

import json
import logging
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mail_assets.settings import Settings, SettingsError, load_settings
from mail_assets.store.database import Database

if TYPE_CHECKING:
    from mail_assets.search.request import Request
    from mail_assets.search.response import Response

WRONG = 2


def say(text: str) -> None:
    """Say something that is not the answer."""
    click.echo(text, err=True)


def answer_json(value: object) -> None:
    """Print one JSON value on one line."""
    click.echo(json.dumps(value, ensure_ascii=False, default=str))


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Hand the settings to a command, and turn known errors into one line and an exit code."""

    @wraps(command)
    def run(*args: object, **kwargs: object) -> None:
        import psycopg

        from mail_assets.search.request import RequestError
        from mail_assets.sources.base import SourceError
        from mail_assets.store.binaries import PostgresError
        from mail_assets.store.migrations import MigrationError
        from mail_assets.store.objects import StoreError
        from mail_assets.vectors.index import VectorError

        try:
            command(load_settings(), *args, **kwargs)
        except (SettingsError, RequestError) as error:
            say(f"mail-assets: {error}")
            sys.exit(WRONG)
        except (
            MigrationError,
            PostgresError,
            SourceError,
            StoreError,
            VectorError,
            psycopg.OperationalError,
        ) as error:
            say(f"mail-assets: {error}")
            sys.exit(1)

    return run


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mail-assets")
def main() -> None:
    """Mailing-list archives to search that people trust.

    Settings come from the environment (MAIL_HOME, MAIL_LISTS, MAIL_PG_DSN, MAIL_STORE,
    MAIL_VECTORS, MAIL_ENCODER, MAIL_PRECISION) and lists.toml; see README.md.
    """
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")


@main.command()
@with_settings
def up(settings: Settings) -> None:
    """Start the embedded server if none is set, migrate, make the Dagster home."""
    from mail_assets.server import server_up

    for line in server_up(settings):
        click.echo(line)


@main.command()
@with_settings
def down(settings: Settings) -> None:
    """Stop the embedded server. Nothing is lost; any command starts it again."""
    from mail_assets.store.database import embedded

    stopped = embedded(settings.home).stop()
    click.echo("stopped" if stopped else "was not running")


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@with_settings
def status(settings: Settings, as_json: bool) -> None:
    """Say what is configured and what is there."""
    from mail_assets.server import read_status

    facts = read_status(settings)
    if as_json:
        answer_json(facts)
        return
    for name, value in facts.items():
        click.echo(f"{name:<12} {value}")


@main.command()
@click.option("--list", "lists", multiple=True, metavar="LIST", help="Default: every list.")
@click.option("--from", "first", metavar="YYYY-MM", help="First month; default: all there are.")
@click.option("--to", "last", metavar="YYYY-MM", help="Last month; default: all there are.")
@click.option("--allow-loss", is_flag=True, help="Accept archives that lost messages.")
@with_settings
def backfill(
    settings: Settings,
    lists: tuple[str, ...],
    first: str | None,
    last: str | None,
    allow_loss: bool,
) -> None:
    """Bring months from their source to the vector bucket, one run a list and year."""
    from mail_assets.backfill import backfill_lists, report_lines

    for name, month in (("--from", first), ("--to", last)):
        if month and not _is_month(month):
            raise SettingsError(name, month, 'must be a month such as "1997-01"')
    report = backfill_lists(
        settings, _known(settings, lists), first, last, allow_loss=allow_loss, say=say
    )
    for line in report_lines(report):
        click.echo(line)
    if report.failed:
        for archive, reason in report.failed.items():
            say(f"mail-assets: {archive} failed: {reason}")
        sys.exit(1)


@main.command()
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
    """Ask the archive a question, in your own words or by an identifier."""
    from mail_assets.search.searcher import open_searcher

    if (query is None) == (queries is None):
        raise click.UsageError("give either a QUERY or --queries FILE")
    requests = (
        _requests(queries, lists, options)
        if queries
        else [_request("", query or "", lists, options)]
    )
    with open_searcher(
        settings.home,
        settings.pg_dsn,
        settings.vectors,
        settings.encoder,
        settings.precision,
        settings.model_cache,
        {name: one.language for name, one in settings.lists.items()},
    ) as searcher:
        for request in requests:
            response = searcher.search(request)
            if as_json or queries:
                answer_json(response.as_json())
            else:
                _print_hits(response)


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@with_settings
def stats(settings: Settings, as_json: bool) -> None:
    """Count what is stored: per list, and the threads of all."""
    from mail_assets.steps.vectors import index_spec, manifest_name
    from mail_assets.store.stats import read_stats

    with Database(settings.home, settings.pg_dsn).connect("stats") as connection:
        spec = index_spec(settings.encoder, settings.precision)
        figures = read_stats(connection, settings.lists, manifest_name(settings.vectors, spec))
    if as_json:
        answer_json(figures)
        return
    import pandas as pd

    table = pd.DataFrame.from_dict(figures["lists"], orient="index")
    click.echo(table.to_string() if len(table) else "no lists")
    click.echo(f"{figures['threads']} threads")


@main.command("list")
@click.option("--list", "name", required=True, metavar="LIST", help="Which list.")
@click.option("--month", metavar="YYYY-MM", help="Only this month.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@with_settings
def list_(settings: Settings, name: str, month: str | None, as_json: bool) -> None:
    """List the messages of a list in the order of its archives."""
    from mail_assets.store.messages import list_messages

    _known(settings, (name,))
    if month and not _is_month(month):
        raise SettingsError("--month", month, 'must be a month such as "1997-01"')
    with Database(settings.home, settings.pg_dsn).connect("list") as connection:
        for row in list_messages(connection, name, month):
            if as_json:
                answer_json(row)
            else:
                day = row["sent_at"][:10]
                click.echo(f"{day}  {row['from_email']:<32.32}  {row['subject']}")


@main.command()
@click.argument("message_id")
@click.option("--raw", is_flag=True, help="Print the bytes as they stand in the archive.")
@click.option("--chunks", is_flag=True, help="Print the chunks and their spans.")
@click.option("--vectors", is_flag=True, help="Print the vectors in the bucket.")
@with_settings
def show(settings: Settings, message_id: str, raw: bool, chunks: bool, vectors: bool) -> None:
    """Show one message, in every list and month that has it."""
    from mail_assets.show import show_chunks, show_raw, show_text, show_vectors

    wanted = message_id.strip().removeprefix("<").removesuffix(">")
    with Database(settings.home, settings.pg_dsn).connect("show") as connection:
        shown = False
        for look, asked in (
            (show_raw, raw),
            (show_chunks, chunks),
            (show_vectors, vectors),
            (show_text, not (raw or chunks or vectors)),
        ):
            if asked:
                for piece in look(settings, connection, wanted):
                    shown = True
                    click.echo(piece, nl=isinstance(piece, str))
    if not shown:
        say(f"mail-assets: no message {wanted}")
        sys.exit(1)


def _known(settings: Settings, lists: tuple[str, ...]) -> tuple[str, ...]:
    for name in lists:
        if name not in settings.lists:
            raise SettingsError("--list", name, f"there are: {', '.join(settings.lists)}")
    return lists or tuple(settings.lists)


def _is_month(text: str) -> bool:
    from mail_assets.sources.months import month_of

    return month_of(text) == text


def _requests(file: Path, lists: tuple[str, ...], options: dict[str, Any]) -> "Iterator[Request]":
    from mail_assets.search.request import RequestError

    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                query_id, text = str(record["_id"]), record["text"]
            except (ValueError, KeyError, TypeError) as error:
                raise RequestError(
                    f'{file}, line {number}: not a {{"_id", "text"}} object: {error!r}'
                ) from None
            yield _request(query_id, text, lists, options)


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
            click.echo(f"    {text[:240]}{'...' if len(text) > 240 else ''}")
    if not response.hits:
        click.echo("nothing found")
    say(f"{len(response.hits)} hits in {response.took_ms:.0f} ms ({response.mode})")

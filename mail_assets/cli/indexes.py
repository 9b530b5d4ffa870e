"""index, reconcile: the indexes of the vector bucket."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import psycopg

from mail_assets.cli.console import FAILED, answer_json, say, searcher_of, with_settings
from mail_assets.cli.judged import judged_options, judged_set
from mail_assets.settings.environment import Settings

if TYPE_CHECKING:
    from mail_assets.vectors.bucket import Bucket


class Opened(NamedTuple):
    """The mail database and the bucket that MAIL_VECTORS names."""

    connection: psycopg.Connection
    bucket: "Bucket"
    url: str


@contextmanager
def _opened(settings: Settings) -> Iterator[Opened]:
    from mail_assets.steps.vector_index import open_mail_bucket

    with settings.database.connect("index") as connection:
        bucket = open_mail_bucket(settings.database, settings.vectors)
        yield Opened(connection, bucket, settings.vectors)


@click.group()
def index() -> None:
    """The indexes of the vector bucket: which there are, and which one search asks.

    Another encoder or precision makes an index beside the live one: set MAIL_ENCODER or
    MAIL_PRECISION and `build` it, `promote` it, and `retire` the old one when it is not missed.
    """


@index.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@with_settings
def list_(settings: Settings, as_json: bool) -> None:
    """List the indexes; the live one is marked with a star."""
    from mail_assets.steps.index_lifecycle import describe_indexes

    with _opened(settings) as (connection, bucket, url):
        for one in describe_indexes(connection, bucket, url):
            if as_json:
                answer_json(one)
            else:
                click.echo(_line(one))


def _line(one: dict[str, str | int | bool]) -> str:
    if "encoder" not in one:
        return f"  {one['name']}  not filled from this database"
    return (
        f"{'*' if one['live'] else ' '} {one['name']}  {one['encoder']} {one['precision']}, "
        f"{one['written']} vectors{'' if one['in_bucket'] else ', missing from the bucket'}"
    )


@index.command()
@with_settings
def build(settings: Settings) -> None:
    """Fill the index of the encoder in force with all months that we have, beside the live one."""
    from mail_assets.defs.backfill import fill_index
    from mail_assets.steps.vector_index import index_spec

    report = fill_index(settings, say=say)
    name = index_spec(settings.encoder, settings.precision).name
    vectors = report.figures.get("vectors", Counter())
    click.echo(
        f"{name}: {len(report.done)} months, {vectors['chunks']} vectors, "
        f"{vectors['written']} written, {vectors['deleted']} deleted"
    )
    for what, reason in report.failed.items():
        say(f"mail-assets: {what} failed: {reason}")
    if report.failed:
        sys.exit(FAILED)


@index.command()
@click.argument("name")
@click.option("--force", is_flag=True, help="Also if it is not fit; this is recorded.")
@judged_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@with_settings
def promote(
    settings: Settings,
    name: str,
    force: bool,
    queries: Path | None,
    qrels: Path | None,
    min_relevant: int | None,
    as_json: bool,
) -> None:
    """Make search ask the index NAME, if it holds every chunk and nothing else.

    With judged queries (--queries and --qrels, or MAIL_QUALITY_SET) it must also answer them no
    worse than the live index does. What both reached is recorded, and search_quality is held to
    it; promote the live index itself to record what it reaches now. Searches under way follow
    with their next query.
    """
    from mail_assets.evaluation.quality import build_judge, describe_quality
    from mail_assets.steps.index_lifecycle import promote_index

    judged = judged_set(settings, queries, qrels, min_relevant)
    judge = build_judge(judged, partial(searcher_of, settings)) if judged else None
    with _opened(settings) as (connection, bucket, url):
        done = promote_index(connection, bucket, url, name, force=force, judge=judge)
    if as_json:
        answer_json(done._asdict())
    else:
        for line in describe_quality(done.report):
            say(line)
        click.echo(f"{name} is live{f', after {done.replaced}' if done.replaced else ''}")
    if (done.encoder, done.precision) != (settings.encoder, settings.precision):
        say(
            f"mail-assets: runs still fill the index of {settings.encoder} {settings.precision}: "
            f"set MAIL_ENCODER={done.encoder} MAIL_PRECISION={done.precision} for them too"
        )


@index.command()
@click.argument("name")
@with_settings
def retire(settings: Settings, name: str) -> None:
    """Delete the index NAME, which must not be live, and its manifest."""
    from mail_assets.steps.index_lifecycle import retire_index

    with _opened(settings) as (connection, bucket, url):
        retire_index(connection, bucket, url, name)
    click.echo(f"{name} is gone")


@click.command()
@click.option("--repair", is_flag=True, help="Delete what is stale, mark what is missing.")
@click.option("--delete-foreign", is_flag=True, help="Delete keys that nobody here has put there.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@with_settings
def reconcile(settings: Settings, repair: bool, delete_foreign: bool, as_json: bool) -> None:
    """Compare every key of the bucket with the manifest and the chunks.

    It looks at the index of the encoder in force. Exit code 1 says that they differed.
    """
    from mail_assets.steps.reconcile_index import reconcile
    from mail_assets.steps.vector_index import open_mail_index

    with _opened(settings) as (connection, bucket, url):
        found = reconcile(
            connection,
            open_mail_index(bucket, url, settings.encoder, settings.precision),
            repair=repair,
            delete_foreign=delete_foreign,
        )
    if as_json:
        answer_json(found.as_json())
    else:
        figures = ", ".join(f"{name} {count}" for name, count in found.figures._asdict().items())
        click.echo(f"{found.index}: {figures}{', clean' if found.clean else ''}")
        for fault in found.faults:
            place = fault.month or "of no month"
            click.echo(f"  {fault.fault:<9} {fault.keys:>8}  {place}  {', '.join(fault.examples)}")
    if repair and not found.clean:
        say("mail-assets: repaired what could be; `mail-assets index build` writes what is missing")
    if not found.clean:
        sys.exit(FAILED)

"""The commands `index` and `reconcile`: fill, promote and retire indexes, and compare them."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from mail_assets.cli.backfill import exit_by, follow_backfill, show_activity
from mail_assets.cli.command import (
    FAILED,
    HelpfulGroup,
    examples,
    json_lines_option,
    json_option,
    pass_settings,
    plural,
    print_error,
    print_json,
    print_note,
    print_table,
)
from mail_assets.encoding.models import DEFAULT_PRECISION, STATIC
from mail_assets.settings.settings import Settings

if TYPE_CHECKING:
    import psycopg

    from mail_assets.evaluation.judged import JudgedQuery
    from mail_assets.indexes.mail_index import MailBucket
    from mail_assets.indexes.reconcile import Reconciliation


@contextmanager
def open_bucket(
    settings: Settings, *, of_words: bool = False
) -> Iterator["tuple[psycopg.Connection, MailBucket]"]:
    """Open the mail database, and the bucket of the vector indexes or of the word indexes."""
    from mail_assets.indexes.vectors import open_vectors_bucket
    from mail_assets.indexes.words import open_words_bucket

    with settings.database.connect("index") as connection:
        if of_words:
            yield connection, open_words_bucket(settings.words)
        else:
            yield connection, open_vectors_bucket(settings.database, settings.vectors)


@click.group(
    cls=HelpfulGroup,
    epilog=examples(
        "mail-assets index list",
        "mail-assets index fill --promote",
        "MAIL_PRECISION=fp32 mail-assets index fill",
    ),
)
def index() -> None:
    """Manage the indexes of vectors and words.

    Each encoder and precision has its own vector index. To change the encoder: set MAIL_ENCODER or
    MAIL_PRECISION, `fill` its index while the old one stays live, `promote` it, and `retire` the
    old one when it is no longer needed. If a new version needs another word index, `backfill` fills
    it, and it becomes live by itself when it has every message.
    """


@index.command("list", epilog=examples("mail-assets index list"))
@json_lines_option
@pass_settings
def list_indexes(settings: Settings, as_json: bool) -> None:
    """List the indexes of vectors and words; * marks live ones."""
    from mail_assets.indexes.live import describe_indexes

    with open_bucket(settings) as (connection, bucket):
        indexes = describe_indexes(connection, bucket)
    with open_bucket(settings, of_words=True) as (connection, bucket):
        indexes += describe_indexes(connection, bucket)
    if as_json:
        for one in indexes:
            print_json(one)
        return
    header = ("live", "kind", "index", "entries", "encoder", "precision", "note")
    print_table(header, map(_index_row, indexes))


def _index_row(one: dict[str, str | int | bool]) -> tuple[object, ...]:
    if "encoder" not in one:
        return "", one["kind"], one["name"], 0, "", "", "not filled from this database"
    note = "" if one["in_bucket"] else "missing from the bucket"
    live = "*" if one["live"] else ""
    columns = (one[name] for name in ("kind", "name", "written", "encoder", "precision"))
    return live, *columns, note


@index.command(
    epilog=examples(
        "mail-assets index fill --promote", "MAIL_ENCODER=bge-small-en-v1.5 mail-assets index fill"
    )
)
@click.option("--promote", "then_promote", is_flag=True, help="Make it live when it is complete.")
@pass_settings
def fill(settings: Settings, then_promote: bool) -> None:
    """Fill the index of the configured model.

    It adds all archived months, newest first. Nothing is fetched again, and search uses the live
    index meanwhile. After `mail-assets backfill --fast` it fills the index that replaces the static
    one. Texts that searches have encoded are not encoded again. After Ctrl-C or a failure the same
    command continues where it stopped. --promote makes the index live by the rules of `index
    promote`.
    """
    from mail_assets.defs.backfill.plan import fill_index
    from mail_assets.indexes.names import index_name

    judged = _read_judged(settings)  # read first, so that a wrong file stops the command here
    if settings.precision == STATIC:  # fill the index that replaces the static one
        settings = replace(settings, precision=DEFAULT_PRECISION)
    with follow_backfill() as listener:
        report = fill_index(settings, listener)
    name = index_name(settings.encoder, settings.precision)
    vectors = report.counts_of("vectors")
    months = len(report.done) + len(report.unchanged)
    click.echo(
        f"{name}: {plural(months, 'month')}, {vectors['chunks']} vectors, "
        f"{vectors['written']} written, {vectors['deleted']} deleted"
    )
    exit_by(report)
    if then_promote:
        _promote(settings, name, judged)


@index.command(epilog=examples("mail-assets index promote mail2-all-minilm-l6-v2-0123456789abcdef"))
@click.argument("name")
@click.option("--force", is_flag=True, help="Promote it even if it fails the checks; recorded.")
@json_option
@pass_settings
def promote(settings: Settings, name: str, force: bool, as_json: bool) -> None:
    """Make the vector index NAME live: search uses it from now on.

    It must contain every chunk and nothing else. With judged queries (MAIL_QUALITY_SET) it must not
    answer them worse than the live index. The quality of both is recorded, and search_quality
    compares later measurements with it. Promote the live index itself to record its quality now. A
    word index becomes live by itself.
    """
    _promote(settings, name, _read_judged(settings), force=force, as_json=as_json)


def _read_judged(settings: Settings) -> "Sequence[JudgedQuery] | None":
    from mail_assets.evaluation.judged import read_set

    return read_set(settings.quality_set).queries if settings.quality_set else None


def _promote(
    settings: Settings,
    name: str,
    judged: "Sequence[JudgedQuery] | None",
    *,
    force: bool = False,
    as_json: bool = False,
) -> None:
    from mail_assets.evaluation.quality import build_judge, describe_quality
    from mail_assets.indexes.live import promote_vectors
    from mail_assets.search.open import open_searcher

    judge = None
    if judged:
        judge = build_judge(judged, lambda index: open_searcher(settings.search, index=index))
    with open_bucket(settings) as (connection, bucket):
        done = promote_vectors(connection, bucket, name, force=force, judge=judge)
    if as_json:
        print_json(done._asdict())
    else:
        for line in describe_quality(done.report):
            print_note(line)
        click.echo(f"{name} is live{f', after {done.replaced}' if done.replaced else ''}")
    if (done.encoder, done.precision) != (settings.encoder, settings.precision):
        print_error(
            f"runs still fill the index of {settings.encoder} {settings.precision}: "
            f"set MAIL_ENCODER={done.encoder} MAIL_PRECISION={done.precision} for them too"
        )


@index.command(epilog=examples("mail-assets index rebuild words-3"))
@click.argument("name")
@pass_settings
def rebuild(settings: Settings, name: str) -> None:
    """Delete the index NAME and fill it again from the stored mail.

    Use it if the files of an index are damaged. Searches fail until it is filled. The vectors come
    from the files of embeddings; only texts that are missing there are encoded.
    """
    from mail_assets.defs.backfill.plan import rebuild_index

    with follow_backfill() as listener:
        report = rebuild_index(settings, name, listener)
    counts = report.counts_of("words" if "words" in report.assets else "vectors")
    click.echo(f"{name}: {plural(len(report.done), 'month')}, {counts['written']} entries written")
    exit_by(report)


@index.command(epilog=examples("mail-assets index retire mail2-all-minilm-l6-v2-0123456789abcdef"))
@click.argument("name")
@pass_settings
def retire(settings: Settings, name: str) -> None:
    """Delete the index NAME and its manifest; it must not be live."""
    from mail_assets.indexes.live import retire_index
    from mail_assets.indexes.names import is_word_index

    with open_bucket(settings, of_words=is_word_index(name)) as (connection, bucket):
        retire_index(connection, bucket, name)
    click.echo(f"{name} is deleted")


@click.command(epilog=examples("mail-assets reconcile", "mail-assets reconcile --repair"))
@click.option(
    "--repair",
    is_flag=True,
    help="Delete stale keys, and mark missing ones for `backfill` to write.",
)
@click.option("--delete-foreign", is_flag=True, help="Delete keys that this database never wrote.")
@json_lines_option
@pass_settings
def reconcile(settings: Settings, repair: bool, delete_foreign: bool, as_json: bool) -> None:
    """Compare the indexes with what they should contain.

    Every key is compared with the manifest. The index of the configured encoder is compared with
    the chunks, the word index with the messages. The exit code is 1 if they differ.
    """
    from mail_assets.indexes.reconcile import reconcile
    from mail_assets.indexes.vectors import open_mail_vectors
    from mail_assets.indexes.words import open_mail_words

    with open_bucket(settings) as (connection, bucket), show_activity("comparing all keys"):
        opened = open_mail_vectors(
            bucket.bucket, bucket.url, settings.encoder, settings.precision, keys_only=True
        )
        found = [
            reconcile(connection, index, repair=repair, delete_foreign=delete_foreign)
            for index in (opened, open_mail_words(settings.words))
        ]
    for one in found:
        if as_json:
            print_json(one.as_json())
        else:
            _print(one)
    if all(one.clean for one in found):
        return
    if repair:
        print_error("repaired; `mail-assets backfill` writes what is missing")
    sys.exit(FAILED)


def _print(found: "Reconciliation") -> None:
    figures = ", ".join(f"{name} {count}" for name, count in found.figures.items())
    click.echo(f"{found.index}: {figures}{', clean' if found.clean else ''}")
    print_table(
        ("fault", "keys", "month", "examples"),
        [
            (fault.fault, fault.keys, fault.month or "none", ", ".join(fault.examples))
            for fault in found.faults
        ],
    )

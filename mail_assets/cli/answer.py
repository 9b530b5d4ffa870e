"""answer: a question answered in words by a chat model, from what search finds."""

import sys
from typing import TYPE_CHECKING, Any

import click

from mail_assets.cli.command import FAILED, examples, pass_settings, print_error
from mail_assets.cli.options import filter_options, json_option, select_lists
from mail_assets.cli.output import print_json, print_note, printable_line
from mail_assets.cli.searcher import open_configured_searcher
from mail_assets.settings.environment import Settings
from mail_assets.settings.errors import SettingsError

if TYPE_CHECKING:
    from mail_assets.answers.answer import Answer


@click.command(epilog=examples("mail-assets answer 'why do jobs run twice after a pause'"))
@click.argument("question")
@click.option("--mode", default="hybrid", show_default=True, help="hybrid, semantic or fulltext.")
@click.option("--limit", default=12, show_default=True, help="How many messages to draw from.")
@filter_options
@json_option
@pass_settings
def answer(
    settings: Settings, question: str, lists: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Answer a question from the archive, with citations.

    A chat model of your choice writes the answer. Excerpts of the mail that search finds are
    sent to MAIL_CHAT_URL. The answer is the model's and may be wrong: its citations are checked
    to exist, and lead to the messages.
    """
    if settings.chat is None:
        raise SettingsError(
            "MAIL_CHAT_URL",
            "",
            "answers need a chat model: set it and MAIL_CHAT_MODEL, and MAIL_CHAT_KEY if there "
            "is one; `mail-assets search` needs none",
        )
    if lists:
        select_lists(settings, lists)

    from mail_assets.answers.answer import answer_question
    from mail_assets.openai.client import Client, Server
    from mail_assets.search.dates import parse_day
    from mail_assets.search.request import Request

    request = Request(
        query=question,
        mode=options["mode"],
        limit=options["limit"],
        lists=lists,
        after=parse_day(options["after"]) if options["after"] else None,
        before=parse_day(options["before"]) if options["before"] else None,
        sender=options["sender"],
    )
    with (
        Client(Server("MAIL_CHAT", settings.chat.url, settings.chat_key)) as client,
        settings.database.connect("answer") as connection,
        open_configured_searcher(settings) as searcher,
    ):
        show = _ignore if as_json else _print_piece
        found = answer_question(searcher, connection, client, settings.chat, request, show)
    if as_json:
        print_json(found.as_json())
    else:
        _print_sources(found)
    _print_remarks(found)
    if not found.complete:
        sys.exit(FAILED)


def _print_piece(text: str) -> None:
    click.echo(text, nl=False)


def _ignore(text: str) -> None:
    """Print nothing: the whole answer is printed at the end."""


def _print_sources(found: "Answer") -> None:
    click.echo("\n" if found.text else "", nl=False)
    for one in found.citations:
        who = printable_line(one.from_name or one.from_email)
        where = ", ".join(f"{start}-{end}" for start, end in one.spans)
        click.echo(f"\n[{one.number}] {printable_line(one.subject)}")
        click.echo(f"    {who}, {one.sent_at[:10]}, {', '.join(one.lists)}")
        click.echo(f"    <{one.message_id}> characters {where}")


def _print_remarks(found: "Answer") -> None:
    """Print on standard error what the answer lacks."""
    if not found.excerpts:
        print_note("nothing was found to answer from")
    elif not found.complete:
        print_error(f"the answer is incomplete: {found.fault}")
    elif not found.sufficient:
        print_note("the excerpts do not answer the question")
    elif not found.citations:
        print_note("the answer cites nothing: do not rely on it")
    if found.dropped:
        print_note(f"citations left out because there is no such excerpt: {found.dropped}")

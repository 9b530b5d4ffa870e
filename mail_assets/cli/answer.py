"""answer: a question answered in words by a chat model, from what search finds."""

import sys
from typing import TYPE_CHECKING, Any

import click

from mail_assets.cli.console import (
    FAILED,
    answer_json,
    known_lists,
    say,
    searcher_of,
    with_settings,
)
from mail_assets.cli.filters import filter_options
from mail_assets.settings.environment import Settings
from mail_assets.settings.errors import SettingsError

if TYPE_CHECKING:
    from mail_assets.answers.answer import Answer


@click.command()
@click.argument("question")
@click.option("--mode", default="hybrid", show_default=True, help="hybrid, semantic or fulltext.")
@click.option("--limit", default=12, show_default=True, help="How many messages to draw from.")
@filter_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, at the end.")
@with_settings
def answer(
    settings: Settings, question: str, lists: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Answer a question from the archive, with citations, by a chat model of your choice.

    Excerpts of the mail that search finds are sent to MAIL_CHAT_URL. The answer is the model's
    and may be wrong: its citations are checked to exist, and lead to the messages.
    """
    if settings.chat is None:
        raise SettingsError(
            "MAIL_CHAT_URL",
            "",
            "answers need a chat model: set it and MAIL_CHAT_MODEL, and MAIL_CHAT_KEY if there "
            "is one; `mail-assets search` needs none",
        )
    if lists:
        known_lists(settings, lists)

    from mail_assets.answers.answer import answer_question
    from mail_assets.openai.client import Client, Server
    from mail_assets.search.request import Request, parse_day

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
        searcher_of(settings) as searcher,
    ):
        show = _silent if as_json else _show
        found = answer_question(searcher, connection, client, settings.chat, request, show)
    if as_json:
        answer_json(found.as_json())
    else:
        _print_sources(found)
    _remark(found)
    if not found.complete:
        sys.exit(FAILED)


def _show(text: str) -> None:
    click.echo(text, nl=False)


def _silent(text: str) -> None:
    """Wait for the whole answer."""


def _print_sources(found: "Answer") -> None:
    click.echo("\n" if found.text else "", nl=False)
    for one in found.citations:
        who = one.from_name or one.from_email
        where = ", ".join(f"{start}-{end}" for start, end in one.spans)
        click.echo(f"\n[{one.number}] {one.subject}")
        click.echo(f"    {who}, {one.sent_at[:10]}, {', '.join(one.lists)}")
        click.echo(f"    <{one.message_id}> characters {where}")


def _remark(found: "Answer") -> None:
    """Say on standard error what makes the answer less than one."""
    if not found.excerpts:
        say("nothing was found to answer from")
    elif not found.complete:
        say(f"mail-assets: the answer is incomplete: {found.fault}")
    elif not found.sufficient:
        say("the excerpts do not answer the question")
    elif not found.citations:
        say("the answer cites nothing: do not rely on it")
    if found.dropped:
        say(f"citations left out because there is no such excerpt: {found.dropped}")

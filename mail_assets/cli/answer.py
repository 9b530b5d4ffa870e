"""answer: a question answered from the archive, with citations."""

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from mail_assets.cli.command import (
    FAILED,
    WRONG_INPUT,
    examples,
    filter_options,
    json_option,
    pass_settings,
    print_error,
    print_json,
    print_note,
    printable_line,
    read_filters,
    select_lists,
)
from mail_assets.settings.settings import Settings

if TYPE_CHECKING:
    from mail_assets.answers.answer import Answer, Event
    from mail_assets.search.language.request import Request


@click.command(
    epilog=examples(
        "mail-assets answer 'when does a lease expire'",
        "mail-assets answer --extractive --list harbor-dev 'when does a lease expire'",
    )
)
@click.argument("question", required=False)
@click.option("--mode", default="hybrid", show_default=True, help="hybrid, semantic or fulltext.")
@click.option("--limit", default=12, show_default=True, help="How many messages to draw from.")
@click.option("--extractive", is_flag=True, help="Without a model, also where one is set.")
@filter_options
@json_option
@pass_settings
def answer(
    settings: Settings, question: str | None, lists: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Answer a question from the archive, with citations.

    The answer is made of sentences of the mail that search finds, each with the place where it
    stands. Where MAIL_CHAT_URL names a chat model, excerpts of the mail are sent there, and it
    writes the answer, which may be wrong: its citations are checked to exist, and lead to the
    messages.

    Without QUESTION, questions are read from standard input, one a line. Each follows up on those
    before it; after an empty line, the next question stands alone.
    """
    if question is not None and not question.strip():
        raise click.UsageError("the question is empty")
    if lists:
        select_lists(settings, lists)

    from mail_assets.answers.answer import Turn
    from mail_assets.answers.chat import open_maker
    from mail_assets.answers.evidence import find_evidence
    from mail_assets.answers.maker import stream_answer
    from mail_assets.search.language.request import RequestError
    from mail_assets.search.open import open_searcher

    chat = None if options["extractive"] else settings.chat
    history: list[Turn] = []
    incomplete = wrong = False
    with (
        open_maker(chat, settings.chat_key) as maker,
        settings.database.connect("answer") as connection,
        open_searcher(settings.search) as searcher,
    ):
        for asked in [question] if question is not None else _read_questions():
            if not asked.strip():
                history.clear()
                continue
            try:
                request = _build_request(asked, lists, options)
                evidence = find_evidence(searcher, connection, request, maker.budget, history)
            except RequestError as error:
                if question is not None:
                    raise
                print_error(str(error))  # the next may be right
                wrong = True
                continue
            found = _show(stream_answer(maker, evidence), as_json)
            if question is None and not as_json:
                click.echo()  # separates the answer from the next
            history.append(Turn(asked, found.text))
            incomplete = incomplete or not found.complete
    if wrong or incomplete:
        sys.exit(WRONG_INPUT if wrong else FAILED)


def _read_questions() -> Iterator[str]:
    """Yield the lines of standard input, with a prompt on a terminal."""
    asks = sys.stdin.isatty()
    while True:
        if asks:
            click.echo("> ", nl=False, err=True)
        line = sys.stdin.readline()
        if not line:
            return
        yield line.rstrip("\n")


def _build_request(question: str, lists: tuple[str, ...], options: dict[str, Any]) -> "Request":
    from mail_assets.search.language.request import Request

    return Request(
        query=question, mode=options["mode"], limit=options["limit"], **read_filters(lists, options)
    )


def _show(events: "Iterable[Event]", as_json: bool) -> "Answer":
    """Print an answer, as it arrives or as one object, and return it."""
    from mail_assets.answers.answer import Answer, Text

    for event in events:
        if isinstance(event, Text) and not as_json:
            click.echo(event.text, nl=False)
        if isinstance(event, Answer):
            found = event
    if as_json:
        print_json(found.as_json())
    else:
        _print_sources(found)
    _print_remarks(found)
    return found


def _print_sources(found: "Answer") -> None:
    click.echo("\n" if found.text else "", nl=False)
    for one in found.citations:
        who = printable_line(one.from_name or one.from_email)
        where = ", ".join(f"{start}-{end}" for start, end in one.spans)
        click.echo(f"\n[{one.number}] {printable_line(one.subject)}")
        click.echo(f"    {who}, {one.sent_at[:10]}, {', '.join(one.lists)}")
        click.echo(f"    <{printable_line(one.message_id)}> characters {where}")
        if one.contested:
            click.echo("    contested: other texts claim this Message-ID; this one arrived first")


def _print_remarks(found: "Answer") -> None:
    """Print the faults of the answer on standard error."""
    if not found.excerpts:
        print_note("nothing was found to answer from")
    elif not found.complete:
        print_error(f"the answer is incomplete: {found.fault}")
    elif not found.sufficient:
        print_note("the excerpts do not answer the question")
    elif not found.citations:
        print_note("the answer cites nothing: do not rely on it")
    if found.dropped:
        print_note(f"citations, addresses and links left out that no excerpt has: {found.dropped}")

"""The command `answer`: answers a question from the archive, with citations."""

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from mail_assets.cli.command import (
    FAILED,
    WRONG_INPUT,
    examples,
    filter_options,
    hand_over,
    json_option,
    name_apart,
    open_reading,
    pass_settings,
    print_error,
    print_json,
    print_note,
    printable,
    printable_line,
    read_filters,
    select_published,
)
from mail_assets.settings.settings import Settings

if TYPE_CHECKING:
    from mail_assets.answers.answer import Answer, Event


@click.command(
    epilog=examples(
        "mail-assets answer 'when does a lease expire'",
        "mail-assets answer --passages --list harbor-dev 'when does a lease expire'",
    )
)
@click.argument("question", required=False)
@click.option("--mode", default="hybrid", show_default=True, help="hybrid, semantic or fulltext.")
@click.option("--limit", default=12, show_default=True, help="How many messages to draw from.")
@click.option("--passages", is_flag=True, help="Answer with passages, even if a chat model is set.")
@click.option("--several", is_flag=True, help="Allow several passages of one conversation.")
@filter_options
@json_option
@pass_settings
def answer(
    settings: Settings, question: str | None, lists: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Answer a question from the archive, with citations.

    The answer is three to five paragraphs of the mail that are nearest to the question, each with
    its author, date and place. If MAIL_CHAT_URL names a chat model, excerpts of the mail are sent
    to it, and it writes the answer. That answer may be wrong; its citations are checked to exist,
    and lead to the messages.

    If you ask what somebody said ("what did Ann say about leases"), the answer comes from that
    person's mail.

    Without QUESTION, questions are read from standard input, one per line. Each follows up on those
    before it; an empty line begins a new conversation.
    """
    if question is not None and not question.strip():
        raise click.UsageError("the question is empty")
    select_published(settings, lists)
    hand_over()

    from mail_assets.answers.answer import stream_answer
    from mail_assets.answers.chat import open_maker
    from mail_assets.answers.evidence import Turn, find_evidence
    from mail_assets.search.language.request import Group, Request, RequestError
    from mail_assets.search.open import open_searcher

    how = {"mode": options["mode"], "limit": options["limit"]}
    if options["several"]:
        how["group"] = Group.message
    chat = None if options["passages"] else settings.chat
    history: list[Turn] = []
    incomplete = wrong = False
    with (
        open_maker(chat, settings.chat_key) as maker,
        open_reading(settings, "answer") as connection,
        open_searcher(settings.search) as searcher,
    ):
        for asked in [question] if question is not None else _read_questions():
            if not asked.strip():
                history.clear()
                continue
            try:
                request = Request(asked, **how, **read_filters(lists, options))
                evidence = find_evidence(searcher, connection, request, maker.budget, history)
            except RequestError as error:
                if question is not None:
                    raise
                print_error(str(error))  # go on with the next question
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
    asks = sys.stdin.isatty()
    while True:
        if asks:
            click.echo("> ", nl=False, err=True)
        line = sys.stdin.readline()
        if not line:
            return
        yield line.rstrip("\n")


def _show(events: "Iterable[Event]", as_json: bool) -> "Answer":
    from mail_assets.answers.answer import Answer, Sources, Text

    for event in events:
        if isinstance(event, Sources) and event.reading and not as_json:
            click.echo(printable_line(event.reading))
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
        who = name_apart(one, [one.from_name] if one.namesake else ())
        where = ", ".join(f"{start}-{end}" for start, end in one.spans)
        click.echo(f"\n[{one.number}] {printable_line(one.subject)}")
        click.echo(f"    {who}, {one.sent_at[:10]}, {', '.join(one.lists)}")
        click.echo(f"    <{printable_line(one.message_id)}> characters {where}")
        if one.contested:
            click.echo("    contested: other texts claim this Message-ID; this one arrived first")
        if one.text:
            click.echo(f"\n{printable(one.text)}")


def _print_remarks(found: "Answer") -> None:
    from mail_assets.answers.answer import PassageMaker

    if not found.complete:
        print_error(f"the answer is incomplete: {found.fault}")
    elif not found.excerpts:
        print_note("nothing was found to answer from")
    elif found.maker != PassageMaker.name and not found.answers:
        print_note("the model found no answer in the excerpts, or cites none: do not rely on it")
    if found.dropped:
        print_note(f"citations, addresses and links left out that no excerpt has: {found.dropped}")

"""Conversations and hits of a search, printed for people."""

import json
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mail_assets.cli.command import plural, print_note, printable, printable_line

if TYPE_CHECKING:
    from mail_assets.search.response import (
        ChunkHit,
        Conversation,
        Facets,
        FirstMessage,
        Hit,
        Response,
    )

#: Ids that are printed of near-duplicates.
MAX_IDS = 5


def print_response(response: "Response") -> None:
    """Print conversations, or hits alone, and why each is one; the time on standard error."""
    explain = dict(response.explain or {})
    if query := explain.pop("query", ""):
        click.echo(f"query: {printable_line(query)}")
    for note in response.notes:
        print_note(printable_line(note))
    why = response.explain is not None
    hits = {hit.message_id: hit for hit in response.hits}
    for number, one in enumerate(response.conversations, 1):
        _print_conversation(number, one, [hits[id] for id in one.best], why=why)
    if not response.conversations:
        for number, hit in enumerate(response.hits, 1):
            _print_hit(number, hit, why=why)
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
    number: int, one: "Conversation", hits: Sequence["Hit"], *, why: bool
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
        _print_message("first", first.from_name or first.from_email, first)
        if first.contested:
            click.echo("      contested: several texts claim this Message-ID")
        if text := cut_beginning(printable(first.text), SHORTEST):
            click.echo(f"      {text}")
    for hit in hits:
        is_first = first is not None and first.message_id == hit.message_id
        score = "" if hit.why.found_by == "date" else f", {hit.score:.3f}"
        role = "first" if is_first else "found"
        _print_message(role, hit.from_name or hit.from_email, hit, score)
        if base_subject(hit.subject) != one.subject:
            click.echo(f"      {_title(hit)}")
        _print_about(hit, "      ", why=why)
    if one.more:
        click.echo(f"    {one.more} more found in it: thread:{printable_line(one.thread_id or '')}")


def _print_message(role: str, author: str, message: "Hit | FirstMessage", score: str = "") -> None:
    name, id = printable_line(author), printable_line(message.message_id)
    click.echo(f"    {role}: {name}, {message.sent_at[:10]}{score} <{id}>")


def _print_hit(number: int, hit: "Hit", *, why: bool) -> None:
    author = printable_line(hit.from_name or hit.from_email)
    click.echo(click.style(f"{number:>2}. ", bold=True) + _title(hit))
    score = "" if hit.why.found_by == "date" else f", {hit.score:.3f}"
    click.echo(f"    {author}, {hit.sent_at[:10]}, {', '.join(hit.lists)}{score}")
    click.echo(f"    <{printable_line(hit.message_id)}>")
    _print_about(hit, "    ", why=why)


def _print_about(hit: "Hit", indent: str, *, why: bool) -> None:
    """Print what else is known of a hit: its snippet, files, copies, and why it is one."""
    if hit.contested:
        which = "arrived first" if hit.text == 1 else f"is text {hit.text}, and came later"
        click.echo(f"{indent}contested: several texts claim this Message-ID; this one {which}")
    if hit.chunks:
        click.echo(f"{indent}{_snippet(hit.chunks[0])}")
    if hit.attachments:
        click.echo(f"{indent}attached: {printable_line(', '.join(hit.attachments))}")
    if hit.patch:
        click.echo(f"{indent}patch: {printable_line(hit.patch.words)}")
    if hit.versions:
        click.echo(f"{indent}instead of: {_list_ids(hit.versions)}")
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
    more = f" and {len(ids) - MAX_IDS} more" if len(ids) > MAX_IDS else ""
    return ", ".join(f"<{printable_line(one)}>" for one in ids[:MAX_IDS]) + more


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

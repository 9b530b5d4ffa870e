"""Hits of a search, printed for people."""

import json
import shlex
from typing import TYPE_CHECKING

import click

from mail_assets.cli.command import plural, print_note, printable, printable_line

if TYPE_CHECKING:
    from mail_assets.search.response import ChunkHit, Facets, Hit, Response

#: Ids that are printed of near-duplicates, and of the rest of a thread.
MAX_IDS = 5


def print_hits(response: "Response") -> None:
    """Print each hit, its best chunk and why it is one; the time it took on standard error."""
    explain = dict(response.explain or {})
    if query := explain.pop("query", ""):
        click.echo(f"query: {printable_line(query)}")
    for note in response.notes:
        print_note(printable_line(note))
    for number, hit in enumerate(response.hits, 1):
        _print_hit(number, hit)
        if response.explain is not None:
            click.echo(f"    why: {'; '.join(hit.why.reasons())}")
    if response.facets:
        _print_facets(response.facets)
    took = f"{response.took_ms:.0f} ms ({response.mode})"
    print_note(f"{plural(len(response.hits), 'hit')} in {took}")
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


def _print_hit(number: int, hit: "Hit") -> None:
    author = printable_line(hit.from_name or hit.from_email)
    click.echo(click.style(f"{number:>2}. ", bold=True) + _title(hit))
    score = "" if hit.why.found_by == "date" else f", {hit.score:.3f}"
    click.echo(f"    {author}, {hit.sent_at[:10]}, {', '.join(hit.lists)}{score}")
    click.echo(f"    <{printable_line(hit.message_id)}>")
    if hit.contested:
        which = "arrived first" if hit.text == 1 else f"is text {hit.text}, and came later"
        click.echo(f"    contested: several texts claim this Message-ID; this one {which}")
    if hit.chunks:
        click.echo(f"    {_snippet(hit.chunks[0])}")
    if hit.attachments:
        click.echo(f"    attached: {printable_line(', '.join(hit.attachments))}")
    if newer := hit.newer_copy:
        about = f"{newer.sent_at[:10]}, {printable_line(newer.subject)}"
        click.echo(f"    newer: {about} <{printable_line(newer.message_id)}>")
    for name, others in (("also as", hit.copies), ("in its thread", hit.in_thread)):
        if others:
            more = f" and {len(others) - MAX_IDS} more" if len(others) > MAX_IDS else ""
            ids = ", ".join(f"<{printable_line(one)}>" for one in others[:MAX_IDS])
            click.echo(f"    {name}: {ids}{more}")


def _title(hit: "Hit") -> str:
    """Return the subject on one line, its highlights marked."""
    from mail_assets.search.response import mark_spans

    pieces = mark_spans(hit.subject, hit.subject_highlights)
    shown = (click.style(printable(text), bold=True, underline=marked) for text, marked in pieces)
    return " ".join("".join(shown).split())


def _snippet(chunk: "ChunkHit") -> str:
    """Return a snippet of a chunk on one line, its highlights marked."""
    from mail_assets.search.response import SHORTEST, cut_snippet

    pieces = []
    for text, marked in cut_snippet(chunk, SHORTEST):
        text = printable(text)
        pieces.append(click.style(text, bold=True, underline=True) if marked else text)
    return " ".join("".join(pieces).split())

"""A response in Markdown: each hit with the reasons for it, and the lines that match."""

from mail_assets.search.reading import name_phrases
from mail_assets.search.response import Hit, Response
from mail_assets.search.snippets import escape_markdown, render_snippet_markdown

#: Characters of a chunk that are shown.
SNIPPET = 400


def answer_markdown(response: Response) -> str:
    """Return a response in Markdown, headed by its query."""
    short = ", fewer than asked for" if response.short else ""
    head = (
        f"**{escape_markdown(response.query)}**\n\n{len(response.hits)} hits in "
        f"{response.took_ms} ms, {response.mode}{short}. "
        f"Again: {escape_markdown(response.permalink)}"
    )
    if response.without_quotes:
        named = escape_markdown(name_phrases(response.without_quotes))
        head += f"\n\nNothing was found that holds {named}: searched without quotes."
    return "\n\n".join(
        [head, *(_hit_markdown(rank, hit) for rank, hit in enumerate(response.hits, 1))]
    )


def _hit_markdown(rank: int, hit: Hit) -> str:
    about = (hit.from_name or hit.from_email, hit.sent_at[:10], ", ".join(hit.lists))
    score = "" if hit.why.found_by == "date" else f"score {hit.score:.3f}: "
    why = "; ".join(hit.why.reasons())
    lines = [
        f"{rank}. **{escape_markdown(hit.subject).strip() or 'no subject'}**  ",
        f"{escape_markdown(', '.join(about))}; {score}{escape_markdown(why)}",
    ]
    if newer := hit.newer_copy:
        lines[-1] += "  "
        lines.append(escape_markdown(f"newer: {newer.sent_at[:10]}, {newer.subject}"))
    if hit.chunks:
        lines += ["", f"> {render_snippet_markdown(hit.chunks[0], SNIPPET)}"]
    return "\n    ".join(lines)

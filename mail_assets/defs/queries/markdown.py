"""A response in Markdown: each hit with the reasons for it, and the lines that match."""

from mail_assets.search.reading import name_phrases
from mail_assets.search.response import REASONS, Hit, Response
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
    lines = [
        f"{rank}. **{escape_markdown(hit.subject).strip() or 'no subject'}**  ",
        f"{escape_markdown(', '.join(about))}; {score}{escape_markdown(_why(hit))}",
    ]
    if newer := hit.newer_copy:
        lines[-1] += "  "
        lines.append(escape_markdown(f"newer: {newer.sent_at[:10]}, {newer.subject}"))
    if hit.chunks:
        lines += ["", f"> {render_snippet_markdown(hit.chunks[0], SNIPPET)}"]
    return "\n    ".join(lines)


def _why(hit: Hit) -> str:
    ranks = (f"{leg} {rank}" for leg, rank in sorted(hit.why.ranks.items()))
    reasons = [*ranks] or [REASONS[hit.why.found_by]]
    if hit.why.distance is not None:
        reasons.append(f"distance {hit.why.distance:.3f}")
    if hit.why.thread_score:
        reasons.append(f"thread {hit.why.thread_score:.3f}")
    if hit.why.words:
        reasons.append(f"words {', '.join(hit.why.words)}")
    return ", ".join(reasons)

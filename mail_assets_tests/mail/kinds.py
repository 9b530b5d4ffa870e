"""Kinds of the lines of a body, as letters."""

from mail_assets.mail.body.segments import segment_body

LETTERS = {
    "text": "t", "quote": "q", "attribution": "a", "signature": "s", "footer": "f", "patch": "p",
}  # fmt: skip


def letters(body: str, from_name: str = "", from_email: str = "", *, answers: bool = True) -> str:
    """Return a letter for the kind of each line of a body."""
    body += "\n"
    return "".join(
        LETTERS[part.kind] * body.count("\n", part.start, part.end)
        for part in segment_body(body, from_name, from_email, answers=answers)
    )

r"""Characters beyond U+FFFF that JSON writes as two halves ("\ud83e\udd86"): joined, or replaced.

A server that sends a token an event may send the halves in two of them, and a model may say one
alone. No file, terminal or database takes a half.
"""

from collections.abc import Iterable, Iterator


def join_halves(texts: Iterable[str]) -> Iterator[str]:
    """Yield texts with the halves of a character that two of them share in the latter."""
    held = ""
    for text in texts:
        text = held + text
        held = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        if whole := replace_halves(text.removesuffix(held)):
            yield whole
    if held:
        yield replace_halves(held)


def replace_halves(text: str) -> str:
    """Return text with both halves of a character joined, and one alone as U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

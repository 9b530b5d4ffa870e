"""Unicode's normal form NFC, in which letters with accents are stored, typed and compared.

Some programs send `e` with a combining accent for `é`, and Python's windows-1258 decodes Vietnamese
so. Ids, addresses and what hashes are made of stay as they were sent.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, groupby, pairwise

from mail_assets.mail.message.addresses import Address
from mail_assets.mail.message.attachments import Attachment
from mail_assets.mail.message.body import AttachedText


def compose(text: str) -> str:
    """The text in NFC; linear but for a sort.

    CPython's own normalization puts combining marks in order by swapping neighbours: 80,000 of them
    took 20 s, a megabyte of mail would take an hour. Here it is given them in their order.
    """
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return text
    return unicodedata.normalize("NFC", "".join(_ordered(text)))


def _ordered(text: str) -> Iterator[str]:
    """Pieces of the text in NFD."""
    decomposed = "".join([unicodedata.normalize("NFD", one) for one in text])
    for _, run in groupby(decomposed, lambda one: unicodedata.combining(one) != 0):
        yield from sorted(run, key=unicodedata.combining)  # 0 is of all that are no marks


def compose_people(people: tuple[Address, ...]) -> tuple[Address, ...]:
    """Mailboxes with their names in NFC."""
    if all(one.name.isascii() for one in people):
        return people
    return tuple(one._replace(name=compose(one.name)) for one in people)


def compose_names(attachments: tuple[Attachment, ...]) -> tuple[Attachment, ...]:
    """Attachments with their file names in NFC; macOS keeps them decomposed."""
    if all(one.name.isascii() for one in attachments):
        return attachments
    return tuple(replace(one, name=compose(one.name)) for one in attachments)


def compose_body(
    text: str, attached: tuple[AttachedText, ...]
) -> tuple[str, tuple[AttachedText, ...]]:
    """The text of a body in NFC, and where the attached messages stand in it then."""
    if not attached or text.isascii():
        return compose(text), attached
    # An attached message begins on a line of its own, so nothing composes across these places.
    places = sorted({0, len(text), *(place for one in attached for place in one)})
    pieces = [compose(text[start:end]) for start, end in pairwise(places)]
    moved = dict(zip(places, accumulate(map(len, pieces), initial=0), strict=True))
    return "".join(pieces), tuple(AttachedText(*map(moved.__getitem__, one)) for one in attached)

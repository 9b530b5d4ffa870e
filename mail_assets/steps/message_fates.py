"""Decide what becomes of each message of a month: stored, a duplicate, or removed.

By the facts alone and in the order of the archive, so that it makes no difference which messages
were parsed now and which were known already.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mail_assets.mail.message.forgotten import Forgotten
from mail_assets.steps.message_rows import Facts
from mail_assets.tables.archive_entries import Outcome

MAX_VARIANT = 32_767  # PostgreSQL's smallint
_TOO_MANY = f"more than {MAX_VARIANT + 1} different messages of the month have its Message-ID"


class Fate(NamedTuple):
    """What becomes of a message, and the number of its content under its id, from 0.

    Of a duplicate, that of the content that it repeats. `removal` is the digest of the entry in
    the list of removals that keeps it out, `reason` why a message is quarantined that can be read.
    """

    outcome: Outcome
    variant: int = 0
    removal: bytes | None = None
    reason: str = ""


QUARANTINED = Fate("quarantined")


def decide_fates(
    facts: Iterable[Facts | None], lossy: frozenset[str], forgotten: Forgotten
) -> list[Fate]:
    """Return the fate of each message of a month in order; one without facts is quarantined.

    `lossy` are the content hashes of copies that another message makes superfluous.
    """
    #: Message-ID -> content hash -> variant
    seen: defaultdict[str, dict[str, int]] = defaultdict(dict)
    fates: list[Fate] = []
    for one in facts:
        if one is None:
            fates.append(QUARANTINED)
            continue
        contents = seen[one.message_id]
        if one.content_hash in contents or one.content_hash in lossy:
            fates.append(Fate("duplicate", contents.get(one.content_hash, 0)))
            continue
        variant, removal = len(contents), _removal_of(one, forgotten)
        if variant > MAX_VARIANT and not removal:
            fates.append(QUARANTINED._replace(reason=_TOO_MANY))
            continue
        contents[one.content_hash] = variant
        fates.append(Fate("removed" if removal else "stored", variant, removal))
    return fates


def find_outline_groups(facts: Sequence[Facts | None]) -> list[int]:
    """Return the positions of messages that may be lossy copies of each other.

    Those with the same outline, where it has several contents.
    """
    contents: defaultdict[bytes, set[str]] = defaultdict(set)
    for one in facts:
        if one is not None and one.outline:
            contents[one.outline].add(one.content_hash)
    return [at for at, one in enumerate(facts) if one and len(contents.get(one.outline, ())) > 1]


def _removal_of(facts: Facts, forgotten: Forgotten) -> bytes | None:
    by_id = forgotten.removal_of_id(facts.message_id)
    if by_id or not facts.author:
        return by_id
    return forgotten.removal_of_author(facts.author.name, facts.author.email)

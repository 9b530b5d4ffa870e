"""Patches of series, made of their subjects."""

from typing import Any

from mail_assets.mail.patches.series import DAY, SeriesPatch
from mail_assets.mail.patches.subjects import fold_title, read_subject

ANN, BOB, EVE = "ann@example.org", "bob@example.org", "eve@example.net"
LONG = frozenset(range(20))


def make(name: str, subject: str, lines: frozenset[int] = LONG, **more: Any) -> SeriesPatch:
    """Return a patch whose changed lines are numbers."""
    named = read_subject(subject)
    sender = more.pop("sender", ANN)
    values = {
        "key": (name, 0),
        "is_cover": named.part == 0,
        "title": named.title,
        "title_key": fold_title(named.title),
        "tags": frozenset(named.tags),
        "version": named.version or 1,
        "part": named.part,
        "parts": named.parts,
        "sender": sender,
        "sender_name": sender.partition("@")[0],
        "author": sender,
        "author_name": sender.partition("@")[0],
        "sent_at": more.pop("day", 0) * DAY,
        "patch_id": "" if named.part == 0 else f"id of {sorted(lines)}",
        "paths": frozenset() if named.part == 0 else frozenset({"crane.c"}),
        "digests": frozenset() if named.part == 0 else lines,
        "change_id": "",
        "links": (),
        "parents": (),
    }
    return SeriesPatch(**{**values, **more})

"""Versions of one patch, joined by their author: by a link, a change id or the same diff.

Two mails are versions of one patch if they are from the same person, and one of these holds:

link        a mail of the later posting links the earlier one with its version ("v1: URL")
change-id   both postings have the same change id, written by the author's tool
patch-id    both have the same diff, with at least LEAST_LINES changed lines

A posting is a series with its cover letter, or a single patch, sent by one person at once. The
parts of two joined postings are paired: the cover letters; patches with the same diff; then
patches with the same title, if it occurs once in each posting; two single patches. Parts without a
partner are left out. Also left out are postings that contain a part twice, mails with several
patches, groups that would join two parts of one posting, and patches for a release
("[PATCH 6.1.y]"), because the same diff for two releases is not a new version.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import combinations, pairwise
from typing import NamedTuple

from benchmarks.yardstick.corpus import Groups, Mail, Patch

#: Fewest changed lines of a diff that cannot be equal by chance.
LEAST_LINES = 6
#: Longest time between the first and the last mail of a posting.
AT_ONCE = timedelta(days=1)

#: A release in the brackets of a subject.
_RELEASE = re.compile(r"\[[^\]]*(?:\b\d+\.\d|\bstable\b|\bautosel\b|\bbackport)", re.I)


class Posted(NamedTuple):
    """A mail with one patch or cover letter."""

    mail: Mail
    patch: Patch

    @property
    def person(self) -> str:
        """Sender, by the full name if there is one, because addresses change more often."""
        name = " ".join(sorted(self.mail.from_name.casefold().replace(",", " ").split()))
        return name if " " in name else self.mail.from_email.casefold()


class Lineage(NamedTuple):
    """Versions of one patch, oldest first, and the evidence that joins them."""

    posted: tuple[Posted, ...]
    evidence: tuple[str, ...]

    @property
    def titles(self) -> set[str]:
        """All titles of the patch."""
        return {one.patch.title_key for one in self.posted}


Posting = Sequence[Posted]


def find_lineages(mails: Iterable[Mail]) -> list[Lineage]:
    """Return the certain lineages of two or more mails, in the order of their first mail."""
    postings = list(_find_postings(mails))
    found: dict[tuple[str, str], str] = {}
    for one, other, evidence in _find_joined(postings):
        for pair in _pair_parts(one, other):
            found.setdefault(pair, evidence)
    for ids in _find_same_diffs(postings):
        for pair in pairwise(ids):
            found.setdefault(pair, "patch-id")
    return sorted(_group(postings, found), key=lambda one: one.posted[0].mail.sent_at)


def _find_postings(mails: Iterable[Mail]) -> Iterator[Posting]:
    """Yield the postings, except those that contain a part twice."""
    together: dict[tuple[object, ...], list[Posted]] = defaultdict(list)
    for mail in mails:
        if mail.patch is None or mail.contested or _RELEASE.search(mail.subject):
            continue
        one = Posted(mail, mail.patch)
        if mail.patch.part is None:
            key: tuple[object, ...] = (mail.message_id,)
        else:
            key = (one.person, mail.patch.version, mail.patch.parts, mail.thread)
        together[key].append(one)
    for some in together.values():
        parts = Counter(one.patch.part for one in some)
        span = some[-1].mail.sent - some[0].mail.sent
        if max(parts.values()) == 1 and span <= AT_ONCE:
            yield some


def _find_joined(postings: Sequence[Posting]) -> Iterator[tuple[Posting, Posting, str]]:
    """Yield pairs of postings that their author has joined, the earlier one first."""
    of_mail = {one.mail.message_id: some for some in postings for one in some}
    by_change: dict[tuple[str, str], list[Posting]] = defaultdict(list)
    for some in postings:
        for one in some:
            for version, linked in one.patch.links:
                other = of_mail.get(linked)
                if other and version == other[0].patch.version and _is_later(some, other):
                    yield other, some, "link"
        if ids := {one.patch.change_id for one in some} - {""}:
            by_change[some[0].person, min(ids)].append(some)
    for alike in by_change.values():
        for pair in combinations(alike, 2):
            earlier, later = sorted(pair, key=lambda x: x[0].mail.sent_at)
            if earlier[0].patch.version != later[0].patch.version:
                yield earlier, later, "change-id"


def _is_later(some: Posting, other: Posting) -> bool:
    return (
        some[0].person == other[0].person
        and some[0].patch.version > other[0].patch.version
        and some[0].mail.sent > other[0].mail.sent
    )


def _pair_parts(one: Posting, other: Posting) -> Iterator[tuple[str, str]]:
    """Yield pairs of mails of two postings that are versions of one part."""
    if len(one) == len(other) == 1 and one[0].patch.kind == other[0].patch.kind == "patch":
        yield one[0].mail.message_id, other[0].mail.message_id
        return
    covers = [[x for x in some if x.patch.kind == "cover"] for some in (one, other)]
    if all(len(some) == 1 for some in covers):
        yield covers[0][0].mail.message_id, covers[1][0].mail.message_id
    taken = set[str]()
    for name in ("patch_id", "title_key"):
        sides = [_by_key(some, name, taken) for some in (one, other)]
        for key in sides[0].keys() & sides[1].keys():
            pair = sides[0][key], sides[1][key]
            taken.update(pair)
            yield pair


def _by_key(some: Posting, name: str, taken: set[str]) -> dict[str, str]:
    """Return key -> mail of the patches whose key occurs once."""
    free = [x for x in some if x.patch.kind == "patch" and x.mail.message_id not in taken]
    keys = Counter(getattr(x.patch, name) for x in free)
    return {
        key: x.mail.message_id for x in free if (key := getattr(x.patch, name)) and keys[key] == 1
    }


def _find_same_diffs(postings: Sequence[Posting]) -> Iterator[list[str]]:
    """Yield mails of one person with the same diff, oldest first."""
    same: dict[tuple[str, str], list[Posted]] = defaultdict(list)
    for some in postings:
        for one in some:
            if one.patch.patch_id and len(one.patch.lines) >= LEAST_LINES:
                same[one.person, one.patch.patch_id].append(one)
    for some in same.values():
        yield [x.mail.message_id for x in sorted(some, key=lambda x: x.mail.sent_at)]


def _group(postings: Sequence[Posting], pairs: dict[tuple[str, str], str]) -> Iterator[Lineage]:
    posted = {one.mail.message_id: one for some in postings for one in some}
    place = {one.mail.message_id: at for at, some in enumerate(postings) for one in some}
    groups, members, evidence = (
        Groups(),
        defaultdict[str, set[str]](set),
        defaultdict[str, set[str]](set),
    )
    for one, other in pairs:
        groups.join(one, other)
    for pair, why in pairs.items():
        members[groups.find(pair[0])].update(pair)
        evidence[groups.find(pair[0])].add(why)
    for name, ids in members.items():
        if len({place[one] for one in ids}) == len(ids):
            ordered = sorted((posted[one] for one in ids), key=lambda x: x.mail.sent_at)
            yield Lineage(tuple(ordered), tuple(sorted(evidence[name])))

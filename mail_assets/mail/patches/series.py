"""Join the postings of one change: v1 to vN, and which patch of one continues which of another.

A posting is what one person sent at once: a patch, or a series with its cover letter. Two postings
are compared as a whole, and the result depends only on these two. So series can be updated from
changes in any order. Evidence, strongest first:

* `patch-id`, `change-id`: the same id;
* `link`, `reply`: the author links or answers the earlier version;
* `title`: the same title by the same person, with a diff that does not contradict;
* `lines`: most of the changed lines are the same, and no other patch shares as many.

Mail is easily forged. A mail by another person joins only if it has the diff of the earlier
version, and arrival decides who was first. A sender who neither sent nor wrote an earlier version
of a change takes it over. If this is a stranger, who does not decide on patches here, the version
is shown but does not count for other versions. The name alone makes nobody the same person where
addresses are known.

Tags, versions and totals may all differ. A patch that names another release and has no higher
version is a backport, which is another change.

With another title a version needs more evidence than its lines: its author names the earlier one,
its diff is the same, or other parts of its posting have their old titles. A step without that is
thin: it continues the earlier patch and may decide its state, but is not a version of it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from mail_assets.mail.patches.patch import EarlierVersion

#: Raise it when the same patches would give different series.
SERIES_VERSION = "10"

DAY = 86_400.0  # seconds
#: Longest time between parts of one posting.
POSTING_SPAN = 2 * DAY
#: After this time, the same title by the same person alone does not join two patches.
TITLE_SPAN = 400 * DAY
#: Patches compared before and after a patch with the same key.
WINDOW = 6
#: Smallest digests of a patch, by which patches with the same lines are found.
SKETCH = 3

# Shares of changed lines, of the smaller and of the larger patch.
_TAKEN_OVER = 0.5  # of a patch by somebody else
_REPLACED = 0.5  # by a diff within an answer
_CONFIRMED = 0.25  # of patches with one title
_SAME_LINES = 0.7  # of patches that share nothing else
_NEXT_LINES = 0.5  # the same, for the next version by the same person soon after
_CLEAR = 0.2  # least distance to the next best pair, in the sum of both shares
_FEW_LINES = 6  # two patches with fewer lines may share them by chance
_SAME_WORDS = 0.75  # share of the words of two titles of one part
_TITLE_WORDS = 4  # one person may use a title of fewer words twice
_AGAIN = frozenset({"resend", "repost", "resent", "ping"})
#: Releases that a patch is sent for: "[PATCH 6.1.y]", "[PATCH AUTOSEL 5.10]", "[PATCH stable]".
_RELEASE = re.compile(
    r"v?\d{1,2}\.\d{1,3}(?:\.[xy\d]{1,3})?(?:-[\w.]{1,12})?|stable|autosel|backport"
)
#: Longest time to the next version with another title, if only half of its lines are the same.
_SOON = 60 * DAY

#: Evidence if only lines join the patches of two postings.
_BY_LINES = ("lines",)

PatchKey = tuple[str, int]  # Message-ID and place in the mail


@dataclass(frozen=True, slots=True)
class SeriesPatch:
    """The fields of a mailed patch that joining needs."""

    key: PatchKey
    is_cover: bool
    title: str
    title_key: str
    tags: frozenset[str]
    version: int
    part: int | None
    parts: int | None
    sender: str  # address of the mail's From, in lower case
    sender_name: str  # folded
    author: str  # in-body From, else the sender
    author_name: str
    sent_at: float  # seconds since 1970
    patch_id: str
    paths: frozenset[str]
    digests: frozenset[int]
    change_id: str
    links: tuple[EarlierVersion, ...]
    parents: tuple[str, ...]  # Message-IDs that the mail refers to, the nearest last
    is_remark: bool = False  # a diff within an answer: a suggestion, rarely a version
    arrived_at: float | None = None  # seconds since 1970; None if only its sender's date is known

    @property
    def order(self) -> tuple[float, PatchKey]:
        """Position among all patches."""
        return self.sent_at, self.key


class Posting(NamedTuple):
    """Patches that one person sent at once, by part."""

    patches: tuple[SeriesPatch, ...]

    @property
    def first(self) -> SeriesPatch:
        """The cover letter, or the first part."""
        return self.patches[0]

    @property
    def cover(self) -> SeriesPatch | None:
        """The cover letter, if there is one."""
        return self.first if self.first.is_cover else None

    @property
    def unlabelled_cover(self) -> str | None:
        """The mail that all parts answer, if its subject does not mark it as a cover letter."""
        parts = self.patches
        if len(parts) < 2 or parts[0].is_cover or parts[0].part != 1 or not parts[0].parents:
            return None
        above = parts[0].parents[-1]
        return above if all(above in patch.parents for patch in parts) else None

    @property
    def start(self) -> tuple[float, PatchKey]:
        """Position among all postings."""
        return min(one.order for one in self.patches)


class Step(NamedTuple):
    """A patch continues an earlier one; `evidence` has words from this module's docstring.

    A thin step joins no versions.
    """

    earlier: PatchKey
    later: PatchKey
    evidence: tuple[str, ...]
    strength: float
    is_thin: bool = False


# Postings ---------------------------------------------------------------------------------------


def posting_key(patch: SeriesPatch) -> tuple[str, int | None] | None:
    """Return the key that the patches of one posting share; None for a mail sent alone."""
    if patch.part is None or patch.is_remark:
        return None
    return patch.sender or patch.sender_name, patch.parts


def group_postings(patches: Iterable[SeriesPatch]) -> list[Posting]:
    """Return the postings of some patches, in order."""
    single: dict[str, list[SeriesPatch]] = defaultdict(list)
    grouped: dict[tuple[str, int | None], list[SeriesPatch]] = defaultdict(list)
    for patch in patches:
        if key := posting_key(patch):
            grouped[key].append(patch)
        else:
            single[patch.key[0]].append(patch)
    postings = [_posting(some) for some in single.values()]
    for some in grouped.values():
        postings += _cut_postings(sorted(some, key=lambda one: one.order))
    return sorted(postings, key=lambda one: one.start)


def _cut_postings(patches: Sequence[SeriesPatch]) -> Iterator[Posting]:
    """Yield the postings among patches with one key: by thread, else by time and part."""
    postings: list[list[SeriesPatch]] = []
    open_postings: list[list[SeriesPatch]] = []
    last: dict[str, list[SeriesPatch]] = {}  # posting of each mail
    for patch in patches:
        ids = (*reversed(patch.parents), patch.key[0])
        named = next((last[x] for x in ids if x in last), None)
        found = named if named and _fits(named, patch) else None
        if found is None:
            open_postings = [
                one for one in open_postings if patch.sent_at - one[-1].sent_at <= POSTING_SPAN
            ]
            found = next((x for x in reversed(open_postings) if _fits(x, patch, near=True)), None)
        if found is None:
            found = []
            postings.append(found)
            open_postings.append(found)
        found.append(patch)
        last[patch.key[0]] = found
    yield from map(_posting, postings)


def _fits(posting: Sequence[SeriesPatch], patch: SeriesPatch, *, near: bool = False) -> bool:
    """Return whether a posting lacks this part and is about as old; `near`: within hours."""
    if patch.sent_at - posting[-1].sent_at > (POSTING_SPAN / 8 if near else POSTING_SPAN):
        return False
    if any(one.part == patch.part for one in posting):
        return False
    if any(one.version == patch.version for one in posting):
        return True
    # only the cover letter has "v2", or only its patches
    [cover, *parts] = posting
    is_silent = patch.version == 1 or (cover.is_cover and cover.version == 1 and not parts)
    return is_silent and not near


def _posting(patches: Iterable[SeriesPatch]) -> Posting:
    first, *rest = sorted(patches, key=lambda one: (not one.is_cover, one.part or 0, one.order))
    version = max(one.version for one in (first, *rest))
    return Posting((replace(first, version=version), *rest))


# Neighbours -------------------------------------------------------------------------------------


def window_keys(patch: SeriesPatch) -> Iterator[tuple[str, Hashable]]:
    """Yield keys, (kind, value), that versions of one change share.

    A patch is compared only with the WINDOW next ones in the order of a key, because thousands may
    have one title.
    """
    if patch.title_key:
        yield "title", patch.title_key
        yield "title of", f"{patch.title_key} {patch.sender}"
    if patch.patch_id:
        yield "patch-id", patch.patch_id
    if patch.change_id:
        yield "change-id", patch.change_id
    for digest in sorted(patch.digests)[:SKETCH]:
        yield "line", digest
    yield "mail", patch.key[0]
    named = [link.message_id for link in patch.links]
    if (patch.part or 0) <= 1 and not patch.is_remark:  # other parts name the cover letter
        named += [*patch.parents[:1], *patch.parents[-2:]]
    elif patch.version > 1 and not patch.is_remark:  # or the part that they replace, and a review
        named += patch.parents[1:-1][-2:]
    for message_id in dict.fromkeys(named):
        yield "mail", message_id


# Comparing --------------------------------------------------------------------------------------


def same_person(earlier: SeriesPatch, later: SeriesPatch) -> bool:
    """Return whether the sender of the later mail sent or wrote the earlier one, by address."""
    return later.sender != "" and later.sender in {earlier.sender, earlier.author}


def _same_name(earlier: SeriesPatch, later: SeriesPatch) -> bool:
    return later.sender_name != "" and later.sender_name in {
        earlier.sender_name,
        earlier.author_name,
    }


def _credits(earlier: SeriesPatch, later: SeriesPatch) -> bool:
    """Return whether the later mail is by, or credits, the sender or author of the earlier one."""
    return (
        same_person(earlier, later)
        or _same_name(earlier, later)
        or (later.author != "" and later.author in {earlier.sender, earlier.author})
    )


def _pass_on(earlier: SeriesPatch, later: SeriesPatch) -> bool:
    """Return whether one person sent both for two authors, as a maintainer collects patches."""
    return (
        same_person(earlier, later)
        and later.sender not in {earlier.author, later.author}
        and later.author != earlier.author
        and later.author_name != earlier.author_name
    )


def is_sender_of(sender: str, name: str, patch: SeriesPatch) -> bool:
    """Return whether somebody sent or wrote a patch: by address, or by name if neither has one."""
    return _identify(sender, name) in _people_of(patch)


def _people_of(patch: SeriesPatch) -> set[tuple[str, str]]:
    """Return who sent and who wrote a patch."""
    people = ((patch.sender, patch.sender_name), (patch.author, patch.author_name))
    return {_identify(*one) for one in people if any(one)}


def _identify(address: str, name: str) -> tuple[str, str]:
    # anybody can use the name of another person, so it counts only where addresses are unknown
    return (address, "") if address else ("", name)


def find_taken_over(versions: Iterable[SeriesPatch]) -> set[PatchKey]:
    """Return the versions by people who sent or wrote no version that arrived before."""
    people: set[tuple[str, str]] = set()
    found: set[PatchKey] = set()
    for one in sorted(versions, key=lambda one: (one.arrived_at or one.sent_at, one.key)):
        if people and _identify(one.sender, one.sender_name) not in people:
            found.add(one.key)
        else:
            people |= _people_of(one)
    return found


def share_lines(a: SeriesPatch, b: SeriesPatch) -> tuple[float, float]:
    """Return the share of common changed lines in the smaller and in the larger patch."""
    if not a.digests or not b.digests:
        return 0.0, 0.0
    both = len(a.digests & b.digests)
    sizes = sorted((len(a.digests), len(b.digests)))
    return both / sizes[0], both / sizes[1]


def _has_few_lines(a: SeriesPatch, b: SeriesPatch) -> bool:
    return min(len(a.digests), len(b.digests)) < _FEW_LINES


def _rises(earlier: SeriesPatch, later: SeriesPatch) -> bool:
    """Return whether the labels show that one follows the other."""
    return (
        later.version > earlier.version
        or bool(later.tags & _AGAIN - earlier.tags)
        or ("rfc" in earlier.tags and "rfc" not in later.tags)
    )


def compare_postings(earlier: Posting, later: Posting) -> list[Step]:
    """Return the steps by which patches of the later posting continue patches of the earlier."""
    if later.start < earlier.start:
        earlier, later = later, earlier
    if _is_backport(earlier.first, later.first):
        return []
    steps = [*_direct_steps(earlier, later)]
    if joined := _joins(earlier, later, [one for one in steps if not one.is_thin]):
        steps += _aligned_steps(earlier, later, steps, joined)
    return steps


def _is_backport(earlier: SeriesPatch, later: SeriesPatch) -> bool:
    named = {tag for tag in later.tags - earlier.tags if _RELEASE.fullmatch(tag)}
    return bool(named) and not _rises(earlier, later)


def _direct_steps(earlier: Posting, later: Posting) -> Iterator[Step]:
    by_id: dict[str, list[SeriesPatch]] = defaultdict(list)
    by_title: dict[str, list[SeriesPatch]] = defaultdict(list)
    for one in earlier.patches:
        if one.patch_id:
            by_id[one.patch_id].append(one)
        if one.title_key:
            by_title[one.title_key].append(one)
    for two in later.patches:
        for one in by_title.get(two.title_key, ()):
            if one.is_cover == two.is_cover and (evidence := _same_title(one, two)):
                strength = 3.0 if "patch-id" in evidence else 2.0
                yield Step(one.key, two.key, evidence, strength + _likeness(one, two))
        for one in by_id.get(two.patch_id, ()):
            if one.title_key != two.title_key and (
                same_person(one, two) or not _has_few_lines(one, two)
            ):
                strength = 1.5 + _likeness(one, two)
                is_thin = _pass_on(one, two) or not _credits(one, two)
                yield Step(one.key, two.key, ("patch-id",), strength, is_thin)


def _likeness(one: SeriesPatch, two: SeriesPatch) -> float:
    """Return the similarity of two patches with one title or patch-id: lines, then the part."""
    return share_lines(one, two)[1] / 5 + (one.part == two.part) / 10


def _same_title(one: SeriesPatch, two: SeriesPatch) -> tuple[str, ...]:
    """Return the evidence that joins two patches of one title, () if it is thin."""
    if one.patch_id and one.patch_id == two.patch_id:
        return ("title", "patch-id")
    small, large = share_lines(one, two)
    if one.is_remark or two.is_remark:
        return ("title", "lines") if large >= _REPLACED else ()
    if not same_person(one, two):
        least = _CONFIRMED if _same_name(one, two) else _TAKEN_OVER
        return ("title", "lines") if large >= least and not _has_few_lines(one, two) else ()
    if small >= _CONFIRMED:
        return ("title", "lines")
    specific = len(one.title.split()) >= _TITLE_WORDS
    if specific and one.paths and one.paths == two.paths and one.key[0] in two.parents:
        return ("title", "reply")  # sent again in its thread, without a number
    if two.sent_at - one.sent_at > TITLE_SPAN or not _rises(one, two):
        return ()
    if one.is_cover or (one.paths and one.paths & two.paths) or specific:
        return ("title",)
    return ()


def _joins(earlier: Posting, later: Posting, steps: Sequence[Step]) -> tuple[str, ...]:
    """Return the evidence that joins two postings as a whole, () if there is none."""
    one, two = earlier.first, later.first
    if one.is_remark or two.is_remark:
        return ()
    found = [*_named(earlier, later)]
    if not same_person(one, two):
        if not any(
            share_lines(a, b)[1] >= _TAKEN_OVER and not _has_few_lines(a, b)
            for a in earlier.patches
            for b in later.patches
        ):
            return ()
        if found:
            return tuple(found)
        if steps and _same_name(one, two):
            return ("title",)
    elif found:
        return tuple(found)
    elif steps:
        return ("title",)
    near = later.start[0] - earlier.start[0] <= TITLE_SPAN
    return _BY_LINES if near and two.version > one.version else ()


def _named(earlier: Posting, later: Posting) -> Iterator[str]:
    """Yield the ways in which a posting names an earlier one."""
    mails = {patch.key[0]: patch for patch in earlier.patches}
    links = [link for patch in later.patches for link in patch.links]
    if any(
        (target := mails.get(link.message_id)) and link.version in {None, target.version}
        for link in links
    ):
        yield "link"
    changes = {patch.change_id for patch in earlier.patches if patch.change_id}
    if any(patch.change_id in changes for patch in later.patches):
        yield "change-id"
    if later.first.version > earlier.first.version and any(x in mails for x in later.first.parents):
        paths = {path for patch in earlier.patches for path in patch.paths}
        if any(patch.paths & paths for patch in later.patches):
            yield "reply"


def _aligned_steps(
    earlier: Posting, later: Posting, steps: Sequence[Step], joined: tuple[str, ...]
) -> Iterator[Step]:
    """Yield steps between patches of joined postings that share neither title nor patch-id."""
    done = {step.earlier for step in steps} | {step.later for step in steps}
    named = joined not in (("title",), _BY_LINES)
    is_thin = joined in (("reply",), _BY_LINES)  # a posting answers only one mail, not each part
    covers = [one for one in (earlier.cover, later.cover) if one]
    if len(covers) == 2 and not done & {one.key for one in covers}:
        same = covers[0].title_key == covers[1].title_key
        most = 3 * len(steps) >= 2 * max(len(earlier.patches), len(later.patches))
        if named or ((same or most) and joined != _BY_LINES):
            done |= {one.key for one in covers}
            yield Step(covers[0].key, covers[1].key, joined, 1.2)
    before = [one for one in earlier.patches if one.key not in done and not one.is_cover]
    after = [two for two in later.patches if two.key not in done and not two.is_cover]
    if named and len(earlier.patches) == len(later.patches) == 1 and before and after:
        yield Step(before[0].key, after[0].key, joined, 1.2)
        return
    if "reply" in joined:
        named_by = Counter(x for two in later.patches for x in two.parents)
        for two in after:
            own = {x for x in two.parents if named_by[x] == 1}
            answered = [one for one in before if one.key[0] in own and one.key not in done]
            if len(answered) == 1 and answered[0].paths & two.paths:
                done |= {answered[0].key, two.key}
                yield Step(answered[0].key, two.key, joined, 1.1, is_thin)
        before = [one for one in before if one.key not in done]
        after = [two for two in after if two.key not in done]
    if joined != _BY_LINES:
        for one, two in _retitled(before, after):
            done |= {one.key, two.key}
            yield Step(one.key, two.key, tuple(dict.fromkeys((*joined, "title"))), 1.0, is_thin)
        before = [one for one in before if one.key not in done]
        after = [two for two in after if two.key not in done]
    evidence = tuple(dict.fromkeys((*joined, "lines")))
    is_next = joined == _BY_LINES and _is_next(earlier, later)
    for score, one, two in _best_partners(before, after, _NEXT_LINES if is_next else _SAME_LINES):
        done |= {one.key, two.key}
        yield Step(one.key, two.key, evidence, 0.5 + score / 4, is_thin)
    if (
        named
        and later.cover
        and len(earlier.patches) == 1
        and not done & {earlier.first.key, later.cover.key}
        and any(earlier.first.paths & two.paths for two in later.patches)
    ):  # a patch grew into a series
        yield Step(earlier.first.key, later.cover.key, joined, 0.8)


def _retitled(
    before: Iterable[SeriesPatch], after: Iterable[SeriesPatch]
) -> Iterator[tuple[SeriesPatch, SeriesPatch]]:
    """Yield pairs with one part, the same files, and nearly all words of their titles in common."""
    alike: dict[Hashable, list[SeriesPatch]] = defaultdict(list)
    for two in after:
        if two.part is not None and two.paths:
            alike[two.part, two.parts, two.paths].append(two)
    for one in before:
        words = {*one.title.casefold().split()}
        for two in alike.get((one.part, one.parts, one.paths), ()):
            others = {*two.title.casefold().split()}
            if len(words & others) >= max(_TITLE_WORDS, _SAME_WORDS * len(words | others)):
                yield one, two


def _is_next(earlier: Posting, later: Posting) -> bool:
    """Return whether the same person sent the next version soon after."""
    return (
        same_person(earlier.first, later.first)
        and later.first.version == earlier.first.version + 1
        and later.start[0] - earlier.start[0] <= _SOON
    )


def _best_partners(
    before: Sequence[SeriesPatch], after: Sequence[SeriesPatch], least: float
) -> Iterator[tuple[float, SeriesPatch, SeriesPatch]]:
    """Yield pairs of patches that share most of their lines, if no other pair comes near."""
    having: dict[int, list[SeriesPatch]] = defaultdict(list)
    for one in before:
        for digest in one.digests:
            having[digest].append(one)
    best: dict[PatchKey, list[tuple[float, PatchKey]]] = defaultdict(list)
    scored = []
    for two in after:
        near = {one.key: one for digest in two.digests for one in having.get(digest, ())}
        for one in near.values():
            small, large = share_lines(one, two)
            if large >= least and not _has_few_lines(one, two):
                scored.append((large + small, one, two))
                best[one.key].append((large + small, two.key))
                best[two.key].append((large + small, one.key))
    for score, one, two in scored:
        others = [x for x, key in best[one.key] if key != two.key]
        others += [x for x, key in best[two.key] if key != one.key]
        if all(other < score - _CLEAR for other in others):
            yield score, one, two


# Lineages ---------------------------------------------------------------------------------------


def order_by_arrival(postings: Sequence[Posting]) -> list[Posting]:
    """Return the postings of a series in order; versions taken over are ordered by arrival.

    Postings of one person are ordered by date: the first mail of a newcomer is often held back.
    """
    taken_over = find_taken_over(x for one in postings for x in one.patches)
    if not taken_over:
        return [*postings]
    settled = [
        Posting(
            tuple(
                replace(x, sent_at=max(x.sent_at, (x.arrived_at or 0) - DAY))
                if x.key in taken_over
                else x
                for x in one.patches
            )
        )
        for one in postings
    ]
    return sorted(settled, key=lambda one: one.start)


class Member(NamedTuple):
    """A patch in its series: the lineage of its part, and the step that joins it.

    A chain is a lineage with the lineages that thin steps join to it. The first patch of a lineage
    may continue a patch of another lineage of its chain.
    """

    key: PatchKey
    lineage: PatchKey  # first patch of the lineage
    chain: PatchKey  # first patch of the chain
    previous: PatchKey | None  # None for the first
    evidence: tuple[str, ...]


class _Groups:
    """Groups of patches, each with at most one patch of a posting."""

    def __init__(self, postings: Sequence[Posting]) -> None:
        home = {patch.key: i for i, one in enumerate(postings) for patch in one.patches}
        self._root = {key: key for key in home}
        self._places = {key: {place} for key, place in home.items()}

    def find(self, key: PatchKey) -> PatchKey:
        while self._root[key] != key:
            self._root[key] = self._root[self._root[key]]
            key = self._root[key]
        return key

    def join(self, step: Step) -> bool:
        """Join the groups of a step's patches; return whether they are one group now."""
        a, b = self.find(step.earlier), self.find(step.later)
        if a != b:
            if self._places[a] & self._places[b]:
                return False
            self._root[b] = a
            self._places[a] |= self._places.pop(b)
        return True


def build_lineages(postings: Sequence[Posting], steps: Iterable[Step]) -> list[Member]:
    """Return the lineages of the patches of one series, joined by the strongest steps first.

    A lineage has at most one patch of a posting: a step that would add a second one is skipped.
    """
    patches = sorted((x for one in postings for x in one.patches), key=lambda one: one.order)
    groups = _Groups(postings)
    ordered = sorted(steps, key=lambda one: (one.is_thin, -one.strength, one.earlier, one.later))
    kept: dict[PatchKey, list[Step]] = defaultdict(list)
    for step in ordered:
        if not step.is_thin and groups.join(step):
            kept[step.later].append(step)
    lineages: dict[PatchKey, list[SeriesPatch]] = defaultdict(list)
    for patch in patches:
        lineages[groups.find(patch.key)].append(patch)
    continued: dict[PatchKey, Step] = {}
    for step in ordered:
        if step.is_thin and groups.join(step):
            continued.setdefault(step.later, step)
    chains: dict[PatchKey, PatchKey] = {}
    for patch in patches:
        chains.setdefault(groups.find(patch.key), patch.key)
    members = []
    for some in lineages.values():
        first = some[0].key
        chain = chains[groups.find(first)]
        thin = continued.get(first)
        if thin:
            members.append(Member(first, first, chain, thin.earlier, thin.evidence))
        else:
            members.append(Member(first, first, chain, None, ()))
        for before, patch in pairwise(some):
            evidence = _evidence(before, patch, kept)
            members.append(Member(patch.key, first, chain, before.key, evidence))
    return members


def _evidence(
    before: SeriesPatch, patch: SeriesPatch, kept: Mapping[PatchKey, Sequence[Step]]
) -> tuple[str, ...]:
    found = kept.get(patch.key, ())
    best = next((step for step in found if step.earlier == before.key), None)
    if best is None:
        best = max(found, key=lambda one: one.strength, default=None)
    return best.evidence if best else ("title",)

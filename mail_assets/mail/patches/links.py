"""Link a commit to the mail that it comes from, to other versions of it, and to mail about it.

A link needs two facts that agree, or one that does not occur by chance, such as the same patch-id.
Otherwise there is no link: a commit that was never mailed must not get the most similar mail. What
a sender writes can be copied. So these mails are not the source of a commit: a mail that reached
the archive long after it; a mail that names it, such as pasted output of `git show`; a mail that
somebody other than the author sent after it. If a commit has no source, an answer in which the
author, who also committed it, shows it soon after it ("I applied this:") is its discussion.

Anybody can also send another text under the Message-ID of a patch, before or after the commit. The
text that arrived first keeps the link, which is marked as contested; other texts never get one. If
the first text has other lines than the commit, and a later one has them, the id has no link.

Pure: steps/link_commits.py finds the candidates and writes the links.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from math import ceil
from typing import NamedTuple

from mail_assets.mail.patches.commits import Commit, NamedMail, find_named_mails
from mail_assets.mail.patches.subjects import fold_title

#: Raise it when the same commits and mails would get different links.
LINKS_VERSION = "11"

#: Error of a clock, or delay of a moderated list.
CLOCK_SLACK = timedelta(days=1)
ARRIVAL_SLACK = timedelta(days=14)
#: A maintainer may mail a patch after the commit on a branch, and push it unchanged later.
PUSH_SLACK = timedelta(days=7)

#: Letters and digits of a title that is specific enough; "fix typo" is not.
LEAST_TITLE = 12
#: Share of a title that two titles must share at the end if only the words before it differ, as in
#: "crane(1): lift it".
SAME_END = 2 / 3
#: Changed lines with letters from which a share of them is evidence.
LEAST_LINES = 4
#: Share of the changed lines, of both sides together, that a change keeps until it is committed.
SAME_LINES = 0.5
#: Share of the files of both by which a patch with the commit's author and date is its mail.
SAME_FILES = 0.5
#: Share of the lines of both, if neither title nor date agrees.
LINES_ALONE = 0.6
#: Share of the lines of both, and least number of lines of the commit, if its author applied the
#: patch of another person to the same file.
OTHERS_LINES = 0.75
LEAST_OTHERS = 10
#: Share of the lines of each part that a squashed commit has, and of its lines that the parts have.
PART_KEPT = 0.75
PARTS_COVER = 0.7
#: Share of the lines that identifies a version if its title is too general, or it is much later.
VERSION_LINES = 0.25
#: Mark in the evidence of a link whose Message-ID several texts claim.
CONTESTED = "contested"
#: Mark in the evidence of a mail in which the author of a commit shows it.
SHOWN = "shown after the commit"
#: Links kept per commit.
MOST_LINKS = 60


class Kind(StrEnum):
    """Relation of a mail to a commit."""

    applied = "applied"
    version = "version"
    discussion = "discussion"
    report = "report"
    missing = "missing"


class CommitFacts(NamedTuple):
    """The facts of a commit that are compared.

    `is_only`: no other commit of its repository has its title. `is_own`: its author committed it,
    perhaps long before it was pushed.
    """

    sha: str
    title_key: str
    author_name: str
    author_email: str
    authored_at: datetime
    committed_at: datetime
    patch_id: str
    paths: frozenset[str]
    lines: frozenset[int]
    named: tuple[NamedMail, ...] = ()
    is_only: bool = True
    is_own: bool = False


def compare_commit(commit: Commit) -> CommitFacts:
    """Return the facts of a commit that are compared."""
    return CommitFacts(
        *(commit.sha, fold_title(commit.subject), commit.author_name, commit.author_email),
        *(commit.authored_at, commit.committed_at, commit.patch_id),
        frozenset(file.path for file in commit.files),
        frozenset(commit.lines),
        tuple(find_named_mails(commit.body)),
        is_own=commit.author_email.casefold() == commit.committer_email.casefold(),
    )


class PatchFacts(NamedTuple):
    """The facts of a mailed patch. `arrived_at` is None if only its sender's date is known."""

    message_id: str
    place: int
    title_key: str
    author_name: str
    author_email: str
    sent_at: datetime
    arrived_at: datetime | None
    patch_id: str
    paths: frozenset[str]
    lines: frozenset[int]
    version: int = 1
    part: int | None = None
    parts: int | None = None
    is_answer: bool = False  # its diff is in an answer, without its own subject
    is_sender: bool = True  # its author sent the mail
    thread_id: str = ""
    in_prefix: bool = False
    named_commits: tuple[str, ...] = ()
    text: int | None = None  # number by arrival, if several texts claim its Message-ID


class ArchivedMail(NamedTuple):
    """An archived mail that a commit names. The fields are as in PatchFacts."""

    thread_id: str = ""
    arrived_at: datetime | None = None
    is_contested: bool = False


class Link(NamedTuple):
    """A message that is linked to a commit, with the evidence as shown to readers."""

    message_id: str
    kind: Kind
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Match:
    patch: PatchFacts
    same_id: bool
    same_title: bool
    same_end: bool  # of the titles
    same_author: bool
    dated: bool  # the date of the commit, which git am takes from the mail
    lines: float  # share of the lines of both that they share
    kept: float  # share of the patch's lines that the commit has
    files: float  # share of the files of both
    named: bool
    in_thread: bool
    late: bool

    @property
    def has_text(self) -> bool:
        """True if the patch has the diff of the commit, or most of its lines."""
        return self.same_id or self.lines >= SAME_LINES

    @property
    def says_more(self) -> bool:
        """True if more than lines and files agrees."""
        said = self.dated or self.same_title or self.named or self.in_thread
        return self.same_id or self.same_author or said

    def rank(self, writer: str, date: datetime | None) -> tuple[object, ...]:
        """Order of matches, best last: the same mail, the same text by its author, the newest.

        `writer` is the address that sent the text of the commit first. `date` is the commit's date
        if a mail has it: the commit keeps this date even if its text comes from a later mail.
        """
        patch, same = self.patch, self.same_id
        by_itself = same and patch.is_sender  # a patch sent by another person may be a copy
        is_later = date is not None and patch.sent_at >= date
        return (
            *(is_later and (same or self.lines == 1), is_later and self.lines >= SAME_LINES),
            *(same and self.named, is_later and same and self.same_title),
            *(self.dated, same, by_itself and self.same_author),
            *(same and self.in_thread, same and self.same_author),
            *(by_itself and patch.author_email.casefold() == writer,),
            *(same and patch.author_email.casefold() == writer, not patch.is_answer),
            *(self.same_title, self.named, patch.in_prefix),
            *(self.lines >= SAME_LINES, self.same_author, patch.sent_at, patch.version),
        )

    def evidence(self) -> Iterator[str]:
        """Yield the facts that agree."""
        if self.named:
            yield "trailer"
        elif self.in_thread:
            yield "thread of the trailer"
        for holds, name in (
            (self.same_id, "patch-id"),
            (self.dated, "date"),
            (self.same_title, "subject"),
            (self.same_author, "author"),
            (self.files > 0, "files"),
        ):
            if holds:
                yield name
        if self.lines and not self.same_id:
            yield f"{self.lines:.0%} of the lines"
        if self.patch.text:
            yield CONTESTED


def link_commit(
    commit: CommitFacts, patches: Iterable[PatchFacts], archived: Mapping[str, ArchivedMail]
) -> list[Link]:
    """Return the links of a commit, best first; none if no mail is certain.

    `patches` are possible sources: with the same patch-id, title or author, named by the commit, or
    in a thread that it names. `archived` are archived ids that it names. A mail that arrived long
    after the commit is not the one that it names: anybody can send a mail with that id.
    """
    latest = commit.committed_at + ARRIVAL_SLACK
    archived = {
        one: mail
        for one, mail in archived.items()
        if mail.arrived_at is None or mail.arrived_at <= latest
    }
    named = {one.message_id for one in commit.named if one.key}
    threads = {archived[one].thread_id for one in named if one in archived} - {""}
    compared = [
        _compare(commit, patch, named, threads)
        for patch in _spread_prefix(patches)
        if patch.patch_id or patch.lines or patch.paths
    ]
    matches = _choose_texts(commit, [m for m in compared if not _names_it(commit, m.patch)])
    sources = _omit_copies([m for m in matches if not m.late and _is_source(commit, m)])
    writer = _find_writer(sources)
    date = commit.authored_at if any(m.dated for m in sources) else None
    sources.sort(key=lambda m: m.rank(writer, date), reverse=True)
    links: dict[tuple[str, Kind], Link] = {}

    def add(match: _Match, kind: Kind, *more: str) -> None:
        one = Link(match.patch.message_id, kind, (*match.evidence(), *more))
        if not any(known in links for known in ((one.message_id, k) for k in Kind)):
            links[one.message_id, kind] = one

    if sources:
        first = sources[0]
        add(first, Kind.applied)
        for other in sources[1:]:
            add(other, Kind.version)
    elif parts := _find_squashed(commit, matches):
        for part in parts:
            add(part, Kind.applied, "part of a squashed series")
    else:
        for match in _choose_texts(commit, compared):
            if _is_shown(commit, match):
                add(match, Kind.discussion, SHOWN)
    for match in sorted(matches, key=lambda m: m.rank(writer, date), reverse=True):
        if sources and _is_version(commit, match):
            add(match, Kind.version)
    found = [*links.values(), *_named_links(commit, {x for x, _ in links}, archived)]
    return found[:MOST_LINKS]


def _spread_prefix(patches: Iterable[PatchFacts]) -> list[PatchFacts]:
    """Return patches, with the prefix also in versions from which an author omitted it."""
    some = [*patches]
    ours = {(one.author_email.casefold(), one.title_key) for one in some if one.in_prefix}
    return [
        one._replace(in_prefix=(one.author_email.casefold(), one.title_key) in ours) for one in some
    ]


def _choose_texts(commit: CommitFacts, matches: Sequence[_Match]) -> list[_Match]:
    """Return the first text of each id, without those that a later text refutes."""
    refuted = {
        m.patch.message_id
        for m in matches
        if (m.patch.text or 1) > 1
        and m.has_text
        and m.patch.arrived_at is not None
        and m.patch.arrived_at <= commit.committed_at
    }
    return [
        m
        for m in matches
        if (m.patch.text or 1) == 1 and (m.has_text or m.patch.message_id not in refuted)
    ]


def _find_writer(sources: Iterable[_Match]) -> str:
    """Return the address that sent the text of the commit first, "" if nobody sent it."""
    same = [m.patch for m in sources if m.same_id]
    first = min(same, key=lambda patch: patch.arrived_at or patch.sent_at, default=None)
    return first.author_email.casefold() if first else ""


def _omit_copies(sources: list[_Match]) -> list[_Match]:
    """Return the sources; if only lines agree, those by whoever sent most of the lines first."""
    if not sources or any(m.says_more for m in sources):
        return sources
    most = max(m.lines for m in sources)
    with_most = (m.patch for m in sources if m.lines == most)
    first = min(with_most, key=lambda patch: patch.arrived_at or patch.sent_at)
    person = (first.author_email.casefold(), first.is_sender)
    return [m for m in sources if (m.patch.author_email.casefold(), m.patch.is_sender) == person]


def abstains(links: Sequence[Link]) -> bool:
    """Return whether no mail is certainly the source of the commit, or named by it."""
    return not any(link.kind in (Kind.applied, Kind.discussion, Kind.report) for link in links)


def _compare(
    commit: CommitFacts, patch: PatchFacts, named: Collection[str], threads: Collection[str]
) -> _Match:
    same_author, is_named = is_same_person(commit, patch), patch.message_id in named
    same_title = bool(commit.title_key) and commit.title_key == patch.title_key
    shared = len(commit.lines & patch.lines)
    all_lines = len(commit.lines | patch.lines)
    lines = shared / all_lines if all_lines else 0.0
    files = _share_files(commit.paths, patch.paths)
    same_id = bool(commit.patch_id) and commit.patch_id == patch.patch_id
    is_own = same_author and patch.is_sender and not patch.is_answer
    slack = timedelta(0)
    if is_own and commit.is_own and (same_id or (same_title and lines >= SAME_LINES)):
        # git makes the Message-ID of a patch from the id of its commit
        is_its = same_id and patch.message_id.startswith(commit.sha)
        slack = ARRIVAL_SLACK if is_its else PUSH_SLACK
    elif is_own or is_named:
        slack = CLOCK_SLACK
    return _Match(
        patch,
        same_id=same_id,
        same_title=same_title,
        same_end=_share_end(commit.title_key, patch.title_key),
        same_author=same_author,
        dated=commit.authored_at == patch.sent_at
        and (same_title or lines >= VERSION_LINES or (same_author and files >= SAME_FILES)),
        lines=lines,
        kept=shared / len(patch.lines) if patch.lines else 0.0,
        files=files,
        named=is_named,
        in_thread=patch.thread_id in threads,
        late=_is_late(commit, patch, slack),
    )


def _share_files(paths: frozenset[str], patched: frozenset[str]) -> float:
    """Return the share of files that both have.

    A diff may have been made in a subfolder, or in a larger tree.
    """
    same = len(paths & patched)
    same = same or max(_count_in_subfolder(paths, patched), _count_in_subfolder(patched, paths))
    either = len(paths) + len(patched) - same
    return same / either if either else 0.0


def _count_in_subfolder(paths: frozenset[str], shorter: frozenset[str]) -> int:
    """Return how many of the shorter paths are the end of one path only."""
    ends = Counter(end for path in paths for end in _ends(path))
    return sum(ends[path] == 1 for path in shorter)


def _ends(path: str) -> Iterator[str]:
    """Yield the path as seen from each folder: "src/a.c" and "a.c" for "port/src/a.c"."""
    while path := path.partition("/")[2]:
        yield path


def _share_end(title: str, other: str) -> bool:
    """Return whether two folded titles differ only at the beginning."""
    least = max(LEAST_TITLE, ceil(SAME_END * max(len(title), len(other))))
    return least <= min(len(title), len(other)) and title[-least:] == other[-least:]


def is_same_person(commit: CommitFacts, patch: PatchFacts) -> bool:
    """Return whether both have the same author, by address or by name ("Ann Harbor via List")."""
    if commit.author_email and commit.author_email.casefold() == patch.author_email.casefold():
        return True
    names = (x.partition(" via ")[0] for x in (commit.author_name, patch.author_name))
    name, other = (" ".join(sorted(_words(x))) for x in names)
    return " " in name and name == other


def _words(name: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in name.casefold()).split()


def _is_late(commit: CommitFacts, patch: PatchFacts, slack: timedelta) -> bool:
    """Return whether a mail was sent so long after the commit, or arrived long after it."""
    if patch.sent_at > commit.committed_at + slack:
        return True
    slack = ARRIVAL_SLACK if slack else CLOCK_SLACK
    return patch.arrived_at is not None and patch.arrived_at > commit.committed_at + slack


def _names_it(commit: CommitFacts, patch: PatchFacts) -> bool:
    return any(commit.sha.startswith(sha) for sha in patch.named_commits)


def _is_source(commit: CommitFacts, m: _Match) -> bool:
    """Return whether a match is certain enough to be the mail that was applied, or a version."""
    says_much = _says_much(commit)
    enough = min(len(commit.lines), len(m.patch.lines)) >= LEAST_LINES
    same_lines = enough and m.lines >= SAME_LINES
    if m.same_id:
        return len(commit.lines) >= LEAST_LINES or m.same_title or m.same_author or m.named
    if m.dated:
        return True
    if m.same_title:
        if same_lines:
            return True
        return says_much and m.files > 0 and (m.same_author or m.named or m.in_thread)
    if m.same_author:
        if m.same_end and m.files > 0 and m.lines >= SAME_LINES:
            return True
        is_whole = len(commit.lines) > 1 and m.lines == m.files == 1
        return is_whole or (enough and m.lines >= LINES_ALONE)
    if m.named or m.in_thread:
        return enough and m.lines >= SAME_LINES
    if enough and commit.is_own and m.files > 0:
        # Subversion and CVS name the person who applied a patch as its author.
        is_long = len(commit.lines) >= LEAST_OTHERS
        return m.lines == 1 or (is_long and m.lines >= OTHERS_LINES)
    return enough and len(commit.lines) >= 3 * LEAST_LINES and m.lines >= 1.5 * LINES_ALONE


def _is_shown(commit: CommitFacts, m: _Match) -> bool:
    """Return whether the author and committer shows the diff in an answer soon after the commit."""
    by_author = commit.is_own and m.same_author and m.patch.is_sender and m.patch.is_answer
    is_whole = m.same_id or (len(commit.lines) > 1 and m.lines == m.files == 1)
    return by_author and is_whole and not _is_late(commit, m.patch, ARRIVAL_SLACK)


def _says_much(commit: CommitFacts) -> bool:
    """Return whether the title identifies the commit; "Fix typo" does not."""
    return len(commit.title_key) >= LEAST_TITLE and commit.is_only


def _is_version(commit: CommitFacts, m: _Match) -> bool:
    if m.same_id:
        return True
    if m.same_title and (m.lines >= VERSION_LINES or (_says_much(commit) and not m.late)):
        return m.same_author or m.files > 0
    return m.same_author and len(m.patch.lines) >= LEAST_LINES and m.lines >= LINES_ALONE


def _find_squashed(commit: CommitFacts, matches: Iterable[_Match]) -> list[_Match]:
    """Return the parts of one series that were squashed into a commit, in order; [] if none."""
    groups: dict[tuple[object, ...], list[_Match]] = {}
    for m in matches:
        patch = m.patch
        kept = len(patch.lines) >= LEAST_LINES and m.kept >= PART_KEPT
        if kept and not m.late and (patch.part is not None or m.in_thread):
            sent = (patch.thread_id, patch.version, patch.parts)
            key = (*sent, patch.author_email.casefold(), patch.is_sender)
            groups.setdefault(key, []).append(m)
    best: list[_Match] = []
    for parts in groups.values():
        numbers = {m.patch.part for m in parts}
        if len(numbers) < 2 or not any(m.same_author or m.in_thread for m in parts):
            continue
        covered = commit.lines & frozenset[int]().union(*(m.patch.lines for m in parts))
        if len(covered) < PARTS_COVER * len(commit.lines):
            continue
        if not best or _rank_parts(parts) > _rank_parts(best):
            best = parts
    return sorted(best, key=lambda m: m.patch.part or 0)


def _rank_parts(parts: Sequence[_Match]) -> tuple[object, ...]:
    own = any(m.same_author and m.patch.is_sender for m in parts)
    return own, parts[0].patch.sent_at


def _named_links(
    commit: CommitFacts, linked: Collection[str], archived: Mapping[str, ArchivedMail]
) -> Iterator[Link]:
    """Yield the mails that the commit names and that are not linked yet."""
    for one in commit.named:
        if one.message_id in linked:
            continue
        how = f"trailer {one.key}" if one.key else "named in the text"
        mail = archived.get(one.message_id)
        if mail is None:
            yield Link(one.message_id, Kind.missing, (how,))
        else:
            kind = Kind.report if one.is_report else Kind.discussion
            marks = (CONTESTED,) if mail.is_contested else ()
            yield Link(one.message_id, kind, (how, *marks))

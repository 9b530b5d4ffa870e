"""Judged sets of the yardstick: questions with certain answers.

A question is a JSON object with `set`, `id`, `text` (for systems that search by words) and further
fields of its set. An answer has `id`, `relevant` (Message-IDs, or ids of commits for outcomes;
empty if nothing is right) and `group`. Questions of a group come from the same threads, and are
resampled together. docs/yardstick.md describes each set.
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.yardstick.citations import Citation, find_citations
from benchmarks.yardstick.corpus import (
    Groups,
    History,
    Mail,
    read_lines,
    withhold_mail,
    write_lines,
)
from benchmarks.yardstick.versions import Lineage, find_lineages
from mail_assets.mail.patches.commits import Commit, find_named_mails
from mail_assets.mail.patches.patch import digest_lines
from mail_assets.mail.patches.subjects import fold_title

#: Names of the sets, in the order of the table.
SETS = ("commits", "subjects", "versions", "retitled", "outcomes", "citations")

#: Most questions of a set that have an answer, and that have none.
MOST_QUESTIONS, MOST_WITHOUT = 250, 250
#: Fewest changed lines of an unmailed commit; the mail of a smaller one may not be recognized.
LEAST_LINES = 4
#: Shares of common changed lines, and of common title words, that suggest the same change.
LIKE_LINES, LIKE_TITLE = 0.4, 0.6
#: Number of commit titles in a mail from which it is an announcement or a pull request.
ANNOUNCEMENT = 5
#: Longest time between a mail and its commit.
BEFORE = timedelta(days=120)

#: Lines per call of digest_lines, which keeps only some of more than 2,000.
AT_ONCE = 500

_WORD = re.compile(r"\w+")


class Question(NamedTuple):
    """A question to a system; `more` are further fields of its set."""

    set: str
    id: str
    text: str
    more: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the line of its file."""
        return {"set": self.set, "id": self.id, "text": self.text, **self.more}


class Answer(NamedTuple):
    """Certain answer to a question; `more` has its evidence."""

    id: str
    relevant: tuple[str, ...]
    group: str
    more: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the line of its file."""
        return {"id": self.id, "relevant": [*self.relevant], "group": self.group, **self.more}


class JudgedSet(NamedTuple):
    """Questions and answers; some answers belong to questions that are not asked."""

    name: str
    questions: Sequence[Question]
    answers: Sequence[Answer]

    @property
    def digest(self) -> str:
        """Digest of the questions; stored results are used only for the same questions."""
        lines = repr([one.as_json() for one in self.questions])
        return hashlib.sha256(lines.encode()).hexdigest()[:12]


Linked = Mapping[str, Sequence[Mail]]
Pair = tuple[Question, Answer]


def make_sets(mails: Sequence[Mail], history: History) -> list[JudgedSet]:
    """Return the sets of a list and a repository."""
    threads = _Threads(mails)
    linked = _link(mails, history)
    lineages = find_lineages(mails)
    for lineage in lineages:
        threads.join(x.mail for x in lineage.posted)
    for some in linked.values():
        threads.join(some)
    unknown = [*_find_unknown(mails, lineages)]
    citations = find_citations(mails)
    known = {one.message_id: one for one in mails}
    for one in citations:
        threads.join((known[one.citing], known[one.cited]))
    made = {
        "commits": [*_ask_commits(mails, history, linked, threads)],
        "versions": [*_ask_versions(lineages, unknown, threads)],
        "retitled": [*_ask_retitled(lineages, unknown, threads)],
        "outcomes": [*_ask_outcomes(mails, history, linked, threads)],
        "citations": [*_ask_citations(citations, threads)],
        "subjects": [*_ask_subjects(history, linked, threads)],
    }
    return [JudgedSet(name, *_draw_questions(made[name])) for name in SETS if made[name]]


def _draw_questions(pairs: Sequence[Pair]) -> tuple[list[Question], list[Answer]]:
    """Return a sample of the questions, which depends only on their ids, and all answers."""
    asked = [
        {one.id for one in sorted(some, key=lambda one: _digest(one.id))[:most]}
        for some, most in (
            ([x for x, answer in pairs if answer.relevant], MOST_QUESTIONS),
            ([x for x, answer in pairs if not answer.relevant], MOST_WITHOUT),
        )
    ]
    return [x for x, _ in pairs if x.id in asked[0] | asked[1]], [answer for _, answer in pairs]


def write_sets(sets: Iterable[JudgedSet], folder: Path) -> None:
    """Write SET.questions.jsonl and SET.answers.jsonl of each set."""
    for one in sets:
        write_lines(folder / f"{one.name}.questions.jsonl", (x.as_json() for x in one.questions))
        write_lines(folder / f"{one.name}.answers.jsonl", (x.as_json() for x in one.answers))


def read_sets(folder: Path) -> list[JudgedSet]:
    """Return the sets that a folder has."""
    found = []
    for name in SETS:
        if not (folder / f"{name}.answers.jsonl").exists():
            continue
        asked = read_lines(folder / f"{name}.questions.jsonl")
        answers = read_lines(folder / f"{name}.answers.jsonl")
        questions = [Question(x.pop("set"), x.pop("id"), x.pop("text"), x) for x in asked]
        found.append(
            JudgedSet(
                name,
                questions,
                [Answer(x.pop("id"), (*x.pop("relevant"),), x.pop("group"), x) for x in answers],
            )
        )
    return found


class _Threads:
    """Groups of threads that are not independent."""

    def __init__(self, mails: Iterable[Mail]) -> None:
        self._groups = Groups()
        self._of = {one.message_id: one.thread for one in mails}

    def join(self, mails: Iterable[Mail]) -> None:
        first, *others = (one.thread for one in mails)
        for other in others:
            self._groups.join(first, other)

    def group(self, message_id: str) -> str:
        return self._groups.find(self._of[message_id])


def _link(mails: Iterable[Mail], history: History) -> dict[str, list[Mail]]:
    """Return the patch mails that commits name in trailers, by commit id.

    A mail counts if it has exactly one patch, which changes a file of the commit.
    """
    known = {one.message_id: one for one in mails if one.patch and not one.contested}
    found: dict[str, list[Mail]] = {}
    for commit in history.commits:
        paths = {path for file in commit.files for path in (file.path, file.old_path) if path}
        named = [one.message_id for one in find_named_mails(commit.body) if one.key]
        for mail in (known[one] for one in named if one in known):
            if mail.patch and mail.patch.kind == "patch" and paths & {*mail.patch.files}:
                found.setdefault(commit.sha, []).append(mail)
    return found


def _describe(commit: Commit, history: History) -> dict[str, Any]:
    """Return the fields of a commit that a system may know."""
    return {
        "body": withhold_mail(commit.body),
        "author_name": commit.author_name,
        "author_email": commit.author_email,
        "authored_at": commit.authored_at.isoformat(),
        "committed_at": commit.committed_at.isoformat(),
        "files": [file.path for file in commit.files],
        "patch_id": commit.patch_id,
    }


def _ask_commits(
    mails: Sequence[Mail], history: History, linked: Linked, threads: _Threads
) -> Iterator[Pair]:
    without = {one.sha for one in _find_unmailed(mails, history)}
    for commit in history.commits:
        found = linked.get(commit.sha, ())
        if not found and commit.sha not in without:
            continue
        id = history.withheld[commit.sha]
        group = threads.group(found[0].message_id) if found else id
        yield (
            Question("commits", id, commit.subject, _describe(commit, history)),
            Answer(id, tuple(x.message_id for x in found), group, {"original": commit.sha}),
        )


def _ask_subjects(history: History, linked: Linked, threads: _Threads) -> Iterator[Pair]:
    for commit in history.commits:
        if found := linked.get(commit.sha):
            id = history.withheld[commit.sha]
            ids = tuple(x.message_id for x in found)
            yield (
                Question("subjects", id, commit.subject, {}),
                Answer(id, ids, threads.group(ids[0]), {"original": commit.sha}),
            )


def _ask_versions(
    lineages: Sequence[Lineage], unknown: Sequence[Sequence[str]], threads: _Threads
) -> Iterator[Pair]:
    for number, lineage in enumerate(lineages):
        more = {
            "lineage": number, "evidence": [*lineage.evidence], "unknown": [*unknown[number]],
        }  # fmt: skip
        for one in lineage.posted:
            id = one.mail.message_id
            relevant = tuple(x.mail.message_id for x in lineage.posted if x != one)
            yield (
                Question("versions", id, one.patch.title, {"subject": one.mail.subject}),
                Answer(id, relevant, threads.group(id), more),
            )


def _ask_retitled(
    lineages: Sequence[Lineage], unknown: Sequence[Sequence[str]], threads: _Threads
) -> Iterator[Pair]:
    """Yield the questions whose versions have another title; others do not count."""
    titles = {x.mail.message_id: x.patch.title_key for one in lineages for x in one.posted}
    for question, answer in _ask_versions(lineages, unknown, threads):
        key = titles[question.id]
        same = [x for x in answer.relevant if titles[x] == key]
        if other := tuple(x for x in answer.relevant if titles[x] != key):
            more = {**question.more, "without": same}
            yield (
                question._replace(set="retitled", more=more), answer._replace(relevant=other),
            )  # fmt: skip


def _find_unknown(mails: Sequence[Mail], lineages: Sequence[Lineage]) -> Iterator[list[str]]:
    """Yield for each lineage the other mails that may be versions of it, without certainty.

    They have a patch with one of its titles, or with LIKE_LINES of the changed lines of one of its
    mails; or they are versions of such a mail.
    """
    members = {x: ids for one in lineages for ids in [_ids(one)] for x in ids}
    titled, having = defaultdict[str, set[str]](set), defaultdict[int, set[str]](set)
    sizes = Counter[str]()
    for mail in mails:
        lines = {line for patch in mail.patches for line in patch.lines}
        sizes[mail.message_id] = len(lines)
        for patch in mail.patches:
            titled[patch.title_key].add(mail.message_id)
        for line in lines:
            having[line].add(mail.message_id)
    for lineage in lineages:
        found = {x for key in lineage.titles for x in titled[key]}
        for one in lineage.posted:
            shared = Counter(id for line in one.patch.lines for id in having[line])
            size = len(one.patch.lines)
            found |= {x for x, n in shared.items() if n >= LIKE_LINES * max(size, sizes[x])}
        found.update(*(members.get(x, ()) for x in [*found]))
        yield sorted(found - _ids(lineage))


def _ids(lineage: Lineage) -> set[str]:
    return {x.mail.message_id for x in lineage.posted}


def _ask_outcomes(
    mails: Sequence[Mail], history: History, linked: Linked, threads: _Threads
) -> Iterator[Pair]:
    """Yield patches that commits name, and patches that cannot belong to this repository."""
    applied: dict[str, list[str]] = defaultdict(list)
    for sha, some in linked.items():
        for mail in some:
            applied[mail.message_id].append(history.withheld[sha])
    names = {Path(path).name for path in history.files}
    foreign = [
        one
        for one in mails
        if (patch := one.patch)
        and not one.contested
        and patch.files
        and not any(path in history.files or Path(path).name in names for path in patch.files)
    ]
    chosen = {one.message_id for one in foreign}
    for mail in mails:
        id = mail.message_id
        if (id in applied or id in chosen) and mail.patch:
            yield (
                Question("outcomes", id, mail.patch.title, {"subject": mail.subject}),
                Answer(id, tuple(applied.get(id, ())), threads.group(id), {}),
            )


def _ask_citations(citations: Iterable[Citation], threads: _Threads) -> Iterator[Pair]:
    for number, one in enumerate(citations):
        id = f"citation-{number}"
        yield (
            Question("citations", id, one.text, {"without": [one.citing]}),
            Answer(id, (one.cited,), threads.group(one.cited), {}),
        )


def _find_unmailed(mails: Sequence[Mail], history: History) -> list[Commit]:
    """Return commits that were certainly not mailed to the list.

    The archive covers the time before the commit. No mail has its title or a similar one, its diff,
    LIKE_LINES of its changed lines, or its id. No mail has its title as a line of text, except
    announcements.
    """
    patches = [one for mail in mails for one in mail.patches]
    titles = {one.title_key for one in patches} | {fold_title(mail.subject) for mail in mails}
    ids = {one.patch_id for one in patches}
    lines = _index_lines(mails)
    keys = {fold_title(one.subject) for one in history.commits}
    listed = _find_listed_titles(mails, keys)
    bodies = {word for mail in mails for word in re.findall(r"\b[0-9a-f]{7,40}\b", mail.body)}
    candidates = [
        one
        for one in history.commits
        if not one.is_merge
        and mails[0].sent + BEFORE < one.authored_at
        and one.committed_at < mails[-1].sent
        and one.patch_id
        and one.patch_id not in ids
        and len(one.lines) >= LEAST_LINES
        and fold_title(one.subject) not in titles | listed
        and not any(one.sha[:size] in bodies for size in range(7, 41))
        and not _has_like_lines(one, lines)
    ]
    known = [frozenset(_WORD.findall(one.title.casefold())) for one in patches]
    drawn = sorted(candidates, key=lambda one: _digest(one.sha))[:MOST_WITHOUT]
    return [one for one in drawn if not _has_like_title(one, known)]


def _find_listed_titles(mails: Iterable[Mail], keys: set[str]) -> set[str]:
    """Return the titles of commits that are lines of mails, except announcements."""
    found: set[str] = set()
    for mail in mails:
        lines = (line.strip(" \t>-*+•") for line in mail.body.splitlines())
        here = {key for line in lines if " " in line and (key := fold_title(line)) in keys}
        if len(here) < ANNOUNCEMENT:
            found |= here
    return found


def _index_lines(mails: Iterable[Mail]) -> Mapping[int, Sequence[int]]:
    """Return digest -> places of the mails that have the line, quoted or not.

    Each line counts as added and as removed, because a commit can change a mail's context lines.
    """
    found: dict[int, list[int]] = defaultdict(list)
    for place, mail in enumerate(mails):
        here = {digest for patch in mail.patches for digest in patch.lines}
        lines = [line.lstrip("> \t+-") for line in mail.body.splitlines()]
        for start in range(0, len(lines), AT_ONCE):
            some = lines[start : start + AT_ONCE]
            here.update(digest_lines(f"{sign}{line}" for line in some for sign in "+-"))
        for digest in here:
            found[digest].append(place)
    return found


def _has_like_lines(commit: Commit, lines: Mapping[int, Sequence[int]]) -> bool:
    """Return True if a mail has LIKE_LINES of a commit's lines."""
    shared = Counter(place for line in commit.lines for place in lines.get(line, ()))
    return max(shared.values(), default=0) >= LIKE_LINES * len(commit.lines)


def _has_like_title(commit: Commit, known: Iterable[frozenset[str]]) -> bool:
    words = {*_WORD.findall(commit.subject.casefold())}
    return any(len(words & one) >= LIKE_TITLE * len(words | one) for one in known if one)


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()

"""Explains a commit: the mail that it comes from, its discussion, summary and reviewers.

The links of a stored commit are stored. Other commits, such as one of a checkout that is newer than
the last run, are linked on request, by the same rules.
"""

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import psycopg

from mail_assets.mail.patches.commits import Commit, find_listed, read_release, read_revision
from mail_assets.mail.patches.links import LEAST_TITLE, Kind, Link, abstains, compare_commit
from mail_assets.mail.patches.outcomes import find_listed_title
from mail_assets.mail.patches.subjects import fold_title, read_subject
from mail_assets.month import utc
from mail_assets.postgres.statements import statement
from mail_assets.reading.conversations import ThreadSize, measure_thread
from mail_assets.reading.patch_talk import PatchTalk, read_talk
from mail_assets.reading.series import Change, read_many
from mail_assets.summaries.decisions import Said
from mail_assets.summaries.summary import Statement
from mail_assets.tables.commits import (
    AmbiguousCommitError,
    CommitKey,
    Discussed,
    StoredCommit,
    find_commits,
    find_links,
    read_commits,
    read_links,
)
from mail_assets.tables.search_vectors import quote_lexeme
from mail_assets.tables.thread_summaries import (
    ThreadSummary,
    describe_statement,
    read_summary,
)
from mail_assets.text.lookalikes import find_lookalikes
from mail_assets.text.untrusted import clean_name
from mail_assets.text.words import list_forms

K = TypeVar("K")

#: Trailer that names a person -> the role of that person.
CREDITS = {
    "reviewed-by": "reviewed",
    "acked-by": "acked",
    "tested-by": "tested",
    "reported-by": "reported",
    "suggested-by": "suggested",
    "co-authored-by": "co-authored",
    "co-developed-by": "co-authored",
}

#: Digits of the shortest abbreviated id that is looked up in mail, and of a whole id.
_SHORTEST, _WHOLE = 7, 40
#: Longest chain of cherry-picks that is followed, such as a backport of a backport.
_MOST_PICKS = 4
#: Reasons why mail does not count: mail that a commit names, then mail with its title, best last.
NOT_HERE = "not in this archive"
_NO_PATCH = "its patch is not in this archive: only answers to it are"
_NO_DIFF = "mail with its title is here, but without a diff to compare"
_OTHER_DIFF = "mail with its title is here, but its diff or date differs from the commit's"
_CONTESTED = "several texts claim the Message-ID of mail with its title; the first has another diff"
_TITLED = (_NO_PATCH, _NO_DIFF, _OTHER_DIFF, _CONTESTED)
#: Most mails with its title that are shown if no mail is certain.
_MOST_TITLED = 20
#: Most words of a title that are used to look up mail with this title.
_MOST_WORDS = 24


class Mail(NamedTuple):
    """A message, in the fields of a one-line description."""

    message_id: str
    thread_id: str | None
    subject: str
    from_name: str
    from_email: str
    sent_at: dt.datetime
    lists: list[str]


class Credit(NamedTuple):
    """The role of a person in a commit, by its trailers: reviewed, tested and so on."""

    role: str
    person: str


class Thanks(NamedTuple):
    """Mail that says in the words `said` that patches were applied.

    by_id: True if it names this commit.
    has_standing: whether its sender decides on patches here, as in reading/series.py.
    patches: the Message-IDs of the patches that it means, as far as that is certain.
    """

    mail: Mail
    said: str
    by_id: bool
    has_standing: bool
    patches: tuple[str, ...] = ()


class Release(NamedTuple):
    """An announcement of a release, such as "ndctl v75", that lists the title of a commit.

    has_standing: whether its sender decides on patches here, as in reading/series.py.
    """

    name: str
    mail: Mail
    has_standing: bool


class CommitCard(NamedTuple):
    """A commit, for display; `revision` is its number in Subversion, "" if it has none."""

    sha: str
    repository: str
    subject: str
    author_name: str
    author_email: str
    authored_at: dt.datetime
    committer_name: str
    committer_email: str
    committed_at: dt.datetime
    credits: tuple[Credit, ...]
    picked_from: tuple[str, ...]
    reverts: tuple[str, ...]
    is_merge: bool
    revision: str


@dataclass(frozen=True)
class Decision:
    """A commit and the mail about it.

    links: best first.
    reason: why no mail is certain, "" if one is.
    thread: the size of the conversation of the first linked mail.
    versions: the changes that the applied mails have versions of.
    talk: what was said about these changes.
    naming: messages that name the commit. If no mail is certain, also patches with its title and
        their answers. Messages of `thanks` are not repeated here.
    thanks: messages that say that it was applied.
    left_out: numbers of further messages, by the keys `thanks` and `named_in`.
    releases: announcements that list its title. They do not prove that it was mailed.
    followed: id of the commit that this one was picked from, if the mail is that commit's.
    """

    commit: CommitCard
    links: tuple[Link, ...]
    mails: Mapping[str, Mail]
    reason: str
    thread: ThreadSize | None = None
    thread_id: str = ""
    summary: ThreadSummary | None = None
    talk: PatchTalk | None = None
    naming: tuple[Mail, ...] = ()
    versions: tuple[Change, ...] = ()
    thanks: tuple[Thanks, ...] = ()
    releases: tuple[Release, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    followed: str = ""

    @property
    def abstained(self) -> bool:
        """True if no mail is certain."""
        return bool(self.reason)

    @property
    def message_ids(self) -> list[str]:
        """The linked mails that are archived, best first; none if no mail is certain."""
        if self.abstained:
            return []
        return [one.message_id for one in self.links if one.kind != Kind.missing]

    @property
    def applied_ids(self) -> list[str]:
        """The archived mails from which the commit was applied; several for a squashed series."""
        return [x.message_id for x in self.links if x.kind == Kind.applied]

    @property
    def namesakes(self) -> set[str]:
        """The names that several people have, or that look like the name of another."""
        mails = [*self.mails.values(), *self.naming]
        mails += [one.mail for one in self.thanks]
        mails += [one.mail for one in self.releases]
        people = [(one.from_name, one.from_email) for one in mails]
        people += [(x.from_name, x.from_email) for x in (self.talk.sentences if self.talk else ())]
        people += [(one.from_name, one.from_email) for _, one in self.find_stated()]
        people.append((self.commit.author_name, self.commit.author_email))
        people.append((self.commit.committer_name, self.commit.committer_email))
        return find_lookalikes((name, address.lower()) for name, address in people)

    def find_stated(self) -> list[tuple[str, Said]]:
        """Return what the discussion decided about this commit, each statement after its label.

        The labels are "decided", or "said" if the author has no known standing, and "superseded".
        """
        if self.summary is None:
            return []
        record = self.summary.read_record()
        label = "decided" if record.decided and record.decided.standing else "said"
        return [
            (name, one)
            for name, one in ((label, record.decided), ("superseded", record.superseded_by))
            if one and not self._is_said_elsewhere(one.statement)
        ]

    def _is_said_elsewhere(self, statement: Statement) -> bool:
        """Return whether a statement is about another patch, or its message is in `thanks`."""
        message_id, text = statement.message_id, statement.text
        elsewhere = self.talk.elsewhere if self.talk else ()
        listed = find_listed_title(text)
        return (
            message_id in elsewhere
            or any(x.mail.message_id == message_id for x in self.thanks)
            or (listed != "" and fold_title(listed) != fold_title(self.commit.subject))
        )

    def find_unknown(self) -> list[str]:
        """Return sentences about what the archive does not say about the commit."""
        found = [f"the mail that it comes from: {self.reason}"] if self.reason else []
        if self.followed:
            found.append(f"mail of its own: it carries over {self.followed}, whose mail this is")
        missing = [x.message_id for x in self.links if x.kind == Kind.missing]
        if missing and not self.reason:
            found.append(f"mail that it names is {NOT_HERE}: {', '.join(missing[:3])}")
        if not self.reason and not self.applied_ids:
            found.append("the patch that it was applied from: only mail about it is certain")
        if not self.reason and not self.summary and not self.talk:
            found.append("a summary of the discussion: none was made")
        found += [
            x
            for change in self.versions
            for x in change.find_unknown()
            if change.gaps and x[0] == "v"
        ]
        return [*dict.fromkeys(found)]

    def as_line(self) -> dict[str, Any]:
        """Return what `why --shas --json` prints for a commit."""
        return {
            "sha": self.commit.sha,
            "message_ids": self.message_ids,
            "abstained": self.abstained,
            "reason": self.reason,
            "evidence": [
                {"message_id": x.message_id, "kind": x.kind.value, "evidence": [*x.evidence]}
                for x in self.links
            ],
        }

    def as_json(self) -> dict[str, Any]:
        """Return what `why --json` prints: the line, the commit, the mails, thread and summary."""
        commit = self.commit._asdict()
        return {
            **self.as_line(),
            "followed": self.followed or None,
            "commit": {
                **commit,
                "authored_at": utc(self.commit.authored_at),
                "committed_at": utc(self.commit.committed_at),
                "credits": [one._asdict() for one in self.commit.credits],
            },
            "mails": [_mail_json(self.mails[x]) for x in self.message_ids if x in self.mails],
            "thread_id": self.thread_id or None,
            "messages": self.thread.messages if self.thread else 0,
            "summary": self.summary.as_json() if self.summary else None,
            "stated": [
                {"label": label, **describe_statement(one, one.statement.text)}
                for label, one in self.find_stated()
            ],
            "said": [one.as_json() for one in self.talk.sentences] if self.talk else [],
            "named_in": [_mail_json(one) for one in self.naming],
            "versions": [one.as_json() for one in self.versions],
            "thanks": [
                {
                    **_mail_json(x.mail),
                    "said": x.said,
                    "names_commit": x.by_id,
                    "has_standing": x.has_standing,
                    "message_ids": [*x.patches],
                }
                for x in self.thanks
            ],
            "released_in": [
                {"name": x.name, "has_standing": x.has_standing, **_mail_json(x.mail)}
                for x in self.releases
            ],
            "left_out": {**self.left_out},
            "unknown": self.find_unknown(),
        }


def _mail_json(mail: Mail) -> dict[str, Any]:
    return {**mail._asdict(), "sent_at": utc(mail.sent_at)}


def explain_stored(
    connection: psycopg.Connection, keys: Sequence[CommitKey], about: Mapping[str, Discussed]
) -> dict[CommitKey, Decision]:
    """Return the decisions of stored commits, without thread, summary and later mail."""
    links = read_links(connection, keys)
    found = {
        key: (_stored_card(row), links.get(key, []))
        for key, row in read_commits(connection, keys).items()
    }
    return _decide(connection, found, about)


def explain_commits(
    connection: psycopg.Connection, commits: Iterable[Commit], repository: str, about: Discussed
) -> dict[str, Decision]:
    """Return the decisions of commits that are not stored, by their ids."""
    read = {commit.sha: commit for commit in commits}
    if not read:
        return {}
    links = find_links(connection, [compare_commit(one) for one in read.values()], about)
    found = {sha: (_card(commit, repository), links[sha]) for sha, commit in read.items()}
    return _decide(connection, found, {repository: about})


def explain_ids(connection: psycopg.Connection, names: Sequence[str]) -> dict[str, Decision]:
    """Return given id -> decision for those commits that are stored.

    Only repositories of lists that may be shown are searched. See `follow_picks`.

    Raises:
        AmbiguousCommitError: several commits begin with one of the ids.
    """
    explain = _explain_shown(connection)
    return follow_picks(explain, explain(names))


def follow_pick(connection: psycopg.Connection, decision: Decision) -> Decision:
    """Return the decision of a stored commit; without mail, use that of the picked commit."""
    if not (decision.abstained and decision.commit.picked_from):
        return decision
    return follow_picks(_explain_shown(connection), {"": decision})[""]


def _explain_shown(
    connection: psycopg.Connection,
) -> Callable[[Sequence[str]], dict[str, Decision]]:
    rows = connection.execute(statement("decisions", "repositories")).fetchall()
    about = {name: Discussed((list_name,)) for name, list_name in rows}

    def explain(some: Sequence[str]) -> dict[str, Decision]:
        keys = find_commits(connection, some, [*about])
        stored = explain_stored(connection, [*keys.values()], about)
        return {name: stored[key] for name, key in keys.items() if key in stored}

    return explain


def follow_picks(
    explain: Callable[[Sequence[str]], Mapping[str, Decision]], found: Mapping[str, Decision]
) -> dict[str, Decision]:
    """Return decisions; a cherry-pick without mail gets the mail of the commit it was picked from.

    `explain` returns given commit id -> decision.
    """
    made = {**found}
    left = {name: one.commit.picked_from for name, one in found.items() if one.abstained}
    for _ in range(_MOST_PICKS):
        others = _explain_any(explain, {sha for picked in left.values() for sha in picked})
        for name, picked in [*left.items()]:
            named = [others[sha] for sha in picked if sha in others]
            if other := next((one for one in named if not one.abstained), None):
                commit, original = made[name].commit, other.commit.sha
                made[name] = replace(other, commit=commit, followed=original)
            left[name] = tuple(x for one in named for x in one.commit.picked_from)
            if other or not left[name]:
                del left[name]
    return made


def _explain_any(
    explain: Callable[[Sequence[str]], Mapping[str, Decision]], names: Collection[str]
) -> dict[str, Decision]:
    """Return the decisions of commits, without those whose ids are ambiguous."""
    try:
        return {**explain([*names])} if names else {}
    except AmbiguousCommitError:
        if len(names) == 1:
            return {}
        return {k: v for name in names for k, v in _explain_any(explain, [name]).items()}


def add_discussion(
    connection: psycopg.Connection, decision: Decision, lists: Collection[str]
) -> Decision:
    """Return a decision with thread, summary, versions, releases, and later mail that names it."""
    first = next((decision.mails[x] for x in decision.message_ids if x in decision.mails), None)
    thread_id = (first.thread_id or "") if first else ""
    titled = _find_titled(connection, decision.commit, lists) if decision.abstained else {}
    applied = [] if decision.abstained else decision.applied_ids
    thanks, more_thanks = _find_thanks(connection, decision.commit, lists, applied)
    said = {one.mail.message_id for one in thanks}
    naming, more_naming = _find_naming(
        connection, decision.commit, lists, [*decision.mails, *said, *titled]
    )
    others = [one for one in titled if one not in said]
    more_naming += len(others[_MOST_TITLED:])
    series = read_many(connection, applied)
    changes = {
        (one.series_id, change.number): change
        for mail, one in series.items()
        for change in one.change_of(mail)
        if any(x.kind == "patch" for x in change.versions)
    }
    versions = [x.message_id for change in changes.values() for x in change.versions]
    found = replace(
        decision,
        reason=max(titled.values(), key=_TITLED.index, default=decision.reason),
        thread=measure_thread(connection, thread_id) if thread_id else None,
        thread_id=thread_id,
        summary=read_summary(connection, thread_id) if thread_id else None,
        talk=read_talk(connection, applied, versions),
        naming=tuple(_read_mails(connection, [*others[:_MOST_TITLED], *naming]).values()),
        versions=tuple(changes.values()),
        thanks=thanks,
        releases=tuple(_find_releases(connection, decision.commit, lists)),
        left_out={"thanks": more_thanks, "named_in": more_naming},
    )
    stated = [one.statement for _, one in found.find_stated()]
    return replace(found, talk=found.talk.leave_out(stated)) if found.talk else found


def _decide(
    connection: psycopg.Connection,
    commits: Mapping[K, tuple[CommitCard, Sequence[Link]]],
    about: Mapping[str, Discussed],
) -> dict[K, Decision]:
    """Return the decisions of commits with their links, by two statements for all commits."""
    archived = [
        x.message_id for _, links in commits.values() for x in links if x.kind != Kind.missing
    ]
    mails, oldest = _read_mails(connection, archived), _oldest_months(connection, about)
    decisions = {}
    for key, (card, links) in commits.items():
        # a message may have been deleted since links were made
        there = tuple(x for x in links if x.kind == Kind.missing or x.message_id in mails)
        own = {x.message_id: mails[x.message_id] for x in there if x.message_id in mails}
        reason = _reason(card, there, oldest.get(card.repository)) if abstains(there) else ""
        decisions[key] = Decision(card, there, own, reason)
    return decisions


def _reason(card: CommitCard, links: Sequence[Link], oldest: str | None) -> str:
    if missing := [x.message_id for x in links if x.kind == Kind.missing]:
        return f"the mail that it names is {NOT_HERE}: {', '.join(missing[:3])}"
    if card.is_merge:
        return "it is a merge: its parents have the mail"
    if oldest is None:
        return "the lists that discuss its repository have no mail here"
    if f"{card.committed_at:%Y-%m}" < oldest:
        return f"it is older than the mail of this archive, which begins in {oldest}"
    return "no mail has its patch-id, and none has its title or lines with certainty"


def _oldest_months(
    connection: psycopg.Connection, about: Mapping[str, Discussed]
) -> dict[str, str]:
    """Return repository -> the first month with mail of the lists that discuss it."""
    lists = {x for one in about.values() for x in one.lists}
    rows = connection.execute(statement("decisions", "oldest"), {"lists": [*lists]})
    first: dict[str, str] = dict(rows.fetchall())
    months = {name: [first[x] for x in one.lists if x in first] for name, one in about.items()}
    return {name: min(some) for name, some in months.items() if some}


def _read_mails(connection: psycopg.Connection, ids: Sequence[str]) -> dict[str, Mail]:
    if not ids:
        return {}
    rows = connection.execute(statement("decisions", "mails"), {"ids": [*dict.fromkeys(ids)]})
    return {row[0]: Mail(*row) for row in rows.fetchall()}


def _find_naming(
    connection: psycopg.Connection,
    card: CommitCard,
    lists: Collection[str],
    shown: Collection[str],
) -> tuple[list[str], int]:
    """Return messages, not in `shown`, that name a commit, and the number of others."""
    ids = [f"'{form}'" for form in _forms(card.sha)]
    values = {
        "query": " | ".join([*ids, f"'{card.revision}'"] if card.revision else ids),
        "ids": " | ".join(ids),
        "revision": rf"\m{card.revision}\M" if card.revision else "",
        "lists": [*lists],
        "since": card.committed_at,
        "shown": [*shown],
    }
    rows = connection.execute(statement("decisions", "naming"), values).fetchall()
    return [row[0] for row in rows], _count_more(rows)


def _count_more(rows: Sequence[Sequence[Any]]) -> int:
    """Return how many rows a statement left out; its last column has the total number."""
    return rows[0][-1] - len(rows) if rows else 0


def _find_titled(
    connection: psycopg.Connection, card: CommitCard, lists: Collection[str]
) -> dict[str, str]:
    """Return patches with the title of a commit, and answers to them: Message-ID -> reason.

    The reason is why the commit cannot be linked to it.
    """
    title = fold_title(card.subject)
    query = _title_query(card)
    if card.is_merge or not query or len(title) < LEAST_TITLE:
        return {}
    values = {"query": query, "lists": [*lists], "since": card.committed_at}
    rows = connection.execute(statement("decisions", "titled"), values).fetchall()
    return {
        message_id: _reason_of_titled(*about)
        for message_id, subject, *about in rows
        if read_subject(subject).title_key == title
    }


def _reason_of_titled(is_answer: bool, has_diff: bool, is_contested: bool) -> str:
    if is_answer:
        return _NO_PATCH
    if is_contested:
        return _CONTESTED
    return _OTHER_DIFF if has_diff else _NO_DIFF


def _title_query(card: CommitCard) -> str:
    words = dict.fromkeys(word for (word, _), _ in list_forms(card.subject))
    lexemes = [
        f"({quote_lexeme(word)} | {quote_lexeme(f'={word}')})" for word in [*words][:_MOST_WORDS]
    ]
    return " & ".join(lexemes)


def _forms(sha: str) -> list[str]:
    return [sha[:size] for size in range(_SHORTEST, min(len(sha), _WHOLE) + 1)]


def _find_thanks(
    connection: psycopg.Connection,
    card: CommitCard,
    lists: Collection[str],
    applied: Sequence[str],
) -> tuple[tuple[Thanks, ...], int]:
    """Return mail that says that the commit or its patch was applied, and the number of others."""
    values = {
        "forms": _forms(card.sha),
        "revisions": [card.revision] if card.revision else [],
        "lists": [*lists],
        "since": card.committed_at,
        "applied": [*applied],
    }
    rows = connection.execute(statement("decisions", "thanks"), values).fetchall()
    mails = _read_mails(connection, [row[0] for row in rows])
    thanks = (
        Thanks(mails[message_id], " ".join(said.split()), by_id, has_standing, tuple(patches))
        for message_id, said, by_id, patches, has_standing, _ in rows
        if message_id in mails
    )
    return tuple(thanks), _count_more(rows)


def _find_releases(
    connection: psycopg.Connection, card: CommitCard, lists: Collection[str]
) -> Iterator[Release]:
    """Yield the announcements of releases that list the title of a commit, oldest first."""
    query = _title_query(card)
    if not query:
        return
    values = {"query": query, "lists": [*lists], "since": card.committed_at}
    for message_id, subject, body, has_standing in connection.execute(
        statement("decisions", "releases"), values
    ).fetchall():
        name = read_release(subject)
        if name and find_listed(body, card.subject):
            mail = _read_mails(connection, [message_id])[message_id]
            yield Release(name, mail, has_standing)


def _credits(trailers: Sequence[Sequence[str]]) -> tuple[Credit, ...]:
    named = [(CREDITS.get(key.lower()), value) for key, value in trailers]
    return tuple(dict.fromkeys(Credit(role, clean_name(person)) for role, person in named if role))


def _card(commit: Commit, repository: str) -> CommitCard:
    return CommitCard(
        *(commit.sha, repository, commit.subject),
        *(commit.author_name, commit.author_email, commit.authored_at),
        *(commit.committer_name, commit.committer_email, commit.committed_at),
        _credits(commit.trailers),
        commit.picked_from,
        commit.reverts,
        commit.is_merge,
        read_revision(commit.body),
    )


def _stored_card(row: StoredCommit) -> CommitCard:
    return CommitCard(
        *(row.key.sha, row.key.repository, row.subject),
        *(row.author_name, row.author_email, row.authored_at),
        *(row.committer_name, row.committer_email, row.committed_at),
        _credits(row.trailers),
        tuple(row.picked_from),
        tuple(row.reverts),
        len(row.parents) > 1,
        read_revision(row.body),
    )

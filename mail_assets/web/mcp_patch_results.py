"""Structured results of the tools about patches, and the plain documents that they are made of.

A document passes through privacy.py before it becomes a result: names, titles and sentences are by
strangers, and may hold addresses.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

from pydantic import BaseModel

from mail_assets.mail.patches.interdiff import PatchComparison
from mail_assets.reading.decisions import Decision, Mail
from mail_assets.reading.series import Change, SeriesPatchView, SeriesView
from mail_assets.web.mcp_results import Result
from mail_assets.web.mcp_text import MAX_HEADER
from mail_assets.web.requests import page_url

#: Entries of each list in a result; `left_out` counts the rest.
MAX_ENTRIES = 30
#: Characters of a sentence that states what became of a patch.
MAX_SAID = 400

State = Literal["open", "silent", "applied", "superseded", "rejected", "withdrawn"]


class MailAbout(BaseModel):
    """A message that names a commit by its id, or answers a patch of it that is not archived."""

    message_id: str
    url: str
    subject: str
    from_name: str
    sent_at: str


class MailOfCommit(MailAbout):
    """A message of a commit: applied (the patch it came from), version, discussion or report."""

    kind: str
    evidence: list[str]


class Statement(BaseModel):
    """The state of a patch, and who says so in which words; without words nobody says it.

    `has_standing` is whether they commit here or decided on patches of two others; null if nobody
    decided. `shas` are commits as they are named; `in_repository` those that a repository here has.
    """

    state: State
    said: str | None
    said_by: str | None
    said_at: str | None
    has_standing: bool | None
    message_id: str | None
    shas: list[str]
    in_repository: list[str]


class PatchVersion(BaseModel):
    """A version of a patch; `evidence` joins it to the version `previous_id`."""

    message_id: str
    url: str
    label: str
    version: int
    part: int | None
    parts: int | None
    title: str
    from_name: str
    sent_at: str
    previous_id: str | None
    evidence: list[str]
    by_another_sender: bool


class PatchChange(BaseModel):
    """A patch or cover letter: its versions, oldest first, and its state."""

    title: str
    kind: str
    statement: Statement
    versions: list[PatchVersion]
    left_out: int


class Sentence(BaseModel):
    """A sentence and its message: of the patch and its answers, else of the whole thread."""

    part: str
    text: str
    message_id: str


class SaidApplied(BaseModel):
    """Mail that says that a patch was applied; `names_commit`: as this commit, by its id.

    `message_ids` are the patches that it says so of, as far as that is certain.
    """

    message_id: str
    said: str
    from_name: str
    sent_at: str
    names_commit: bool
    message_ids: list[str]


class ReleaseOfCommit(BaseModel):
    """An announcement of a release that lists the title of the commit."""

    name: str
    message_id: str
    from_name: str
    sent_at: str


class ExplainedCommit(BaseModel):
    """A commit and the mail about it; `abstained`: no mail is certain, for a reason.

    `asked` is the id as it was given. `followed` is the commit that it
    carries over, if the mail is that of the other.
    `left_out` counts further `thanks` and `named_in`.
    `unknown` are facts that the archive does not have.
    """

    asked: str
    sha: str | None
    repository: str | None
    subject: str
    author_name: str
    authored_at: str | None
    committer_name: str
    committed_at: str | None
    credits: list[str]
    followed: str | None
    abstained: bool
    reason: str
    mails: list[MailOfCommit]
    changes: list[PatchChange]
    thread_id: str | None
    summary: list[Sentence]
    thanks: list[SaidApplied]
    named_in: list[MailAbout]
    released_in: list[ReleaseOfCommit]
    left_out: dict[str, int]
    unknown: list[str]


class WhyResult(Result):
    """The commits as they were asked for."""

    commits: list[ExplainedCommit]


class Posting(BaseModel):
    """Patches that were sent at once, as one version of a series."""

    version: int
    message_id: str
    url: str
    patches: int
    from_name: str
    sent_at: str


class SeriesFields(BaseModel):
    """The series of a mail: `part` are its own patches, `beside` the other ones."""

    message_id: str
    title: str
    postings: list[Posting]
    part: list[PatchChange]
    beside: list[PatchChange]
    left_out: int
    unknown: list[str]


class ComparedFile(BaseModel):
    """A file in two versions of a patch; `context`: only the lines around the changes differ."""

    path: str
    old_path: str
    state: Literal["same", "context", "changed", "added", "dropped"]
    is_cut: bool


class ComparedPatch(BaseModel):
    """A patch in two versions; `old_id` or `new_id` is null where only one has it."""

    title: str
    state: Literal["same", "context", "changed", "added", "dropped"]
    old: str | None
    new: str | None
    old_id: str | None
    new_id: str | None
    changelog: list[str]
    files: list[ComparedFile]


class ComparisonFields(BaseModel):
    """The differences between two versions; the lines are in the text."""

    old_id: str
    new_id: str
    compared: list[ComparedPatch]
    left_out: int
    unknown: list[str]


class SeriesResult(SeriesFields, Result):
    """A series, as text too."""


class ComparisonResult(ComparisonFields, Result):
    """A comparison, as text too."""


class Dated(Protocol):
    """A message of reading/decisions.py."""

    @property
    def message_id(self) -> str:
        """Its Message-ID."""

    @property
    def from_name(self) -> str:
        """The name of its sender."""

    @property
    def sent_at(self) -> datetime:
        """The time at which it was sent."""


def ids_of(patches: Iterable[SeriesPatchView]) -> set[str]:
    """Return the ids of messages that patches of series name: they may be shown."""
    found = {x for one in patches for x in (one.message_id, one.reason_id, one.previous_id) if x}
    return found


def describe_sender(mail: Dated) -> dict[str, Any]:
    """Return who sent a message and when."""
    return {
        "message_id": mail.message_id,
        "from_name": mail.from_name[:MAX_HEADER],
        "sent_at": mail.sent_at.isoformat(),
    }


def describe_no_commit(asked: str, reason: str) -> dict[str, Any]:
    """Return the document of a commit that no repository has."""
    lists = ("credits", "mails", "changes", "summary", "thanks", "named_in", "released_in")
    words = ("subject", "author_name", "committer_name")
    nothing = ("sha", "repository", "authored_at", "committed_at", "followed", "thread_id")
    return {
        "asked": asked,
        "abstained": True,
        "reason": reason,
        "unknown": [f"the commit: {reason}"],
        **dict.fromkeys(words, ""),
        **dict.fromkeys(nothing),
        **{name: [] for name in lists},
        "left_out": {"thanks": 0, "named_in": 0},
    }


def describe_mails(decision: Decision) -> Iterator[dict[str, Any]]:
    """Yield the certain mails of a commit; none if no mail is certain."""
    wanted = {*decision.message_ids}
    for link in decision.links:
        mail = decision.mails.get(link.message_id)
        if mail and link.message_id in wanted:
            yield {
                **describe_about(mail),
                "kind": link.kind.value,
                "evidence": [*link.evidence],
            }


def describe_about(mail: Mail) -> dict[str, Any]:
    """Return the document of a message about a commit."""
    return {
        **describe_sender(mail),
        "url": page_url("message", mail.message_id),
        "subject": mail.subject[:MAX_HEADER],
    }


def describe_posting(patches: Sequence[SeriesPatchView]) -> dict[str, Any]:
    """Return the document of what was sent at once."""
    first = patches[0]
    return {
        **describe_sender(first),
        "version": first.version,
        "url": page_url("message", first.message_id),
        "patches": sum(one.kind == "patch" for one in patches),
    }


def describe_change(change: Change) -> dict[str, Any]:
    """Return the document of a patch, its versions and its state."""
    deciding, versions = change.deciding, change.versions[-MAX_ENTRIES:]
    said = " ".join(deciding.said.split())[:MAX_SAID] if deciding.said else None
    return {
        "title": change.newest.title[:MAX_HEADER],
        "kind": change.newest.kind,
        "left_out": len(change.versions) - len(versions),
        "statement": {
            "state": deciding.state,
            "said": said,
            "said_by": deciding.said_by[:MAX_HEADER] if said and deciding.said_by else None,
            "said_at": deciding.said_at.isoformat() if said and deciding.said_at else None,
            "has_standing": deciding.has_standing,
            "message_id": deciding.reason_id,
            "shas": change.shas[:MAX_ENTRIES],
            "in_repository": [*dict.fromkeys(x for one in change.versions for x in one.commits)],
        },
        "versions": [
            {
                **describe_sender(one),
                "url": page_url("message", one.message_id),
                "label": one.label,
                "version": one.version,
                "part": one.part,
                "parts": one.parts,
                "title": one.title[:MAX_HEADER],
                "previous_id": one.previous_id,
                "evidence": [*one.evidence],
                "by_another_sender": one.is_taken_over,
            }
            for one in versions
        ],
    }


def find_others(series: SeriesView, message_id: str) -> list[Change]:
    """Return the changes of a series that a mail has no version of."""
    own = {one.number for one in series.change_of(message_id)}
    return [one for one in series.changes if one.number not in own]


def describe_comparison(one: PatchComparison) -> dict[str, Any]:
    """Return the document of a patch in two versions, without its lines."""
    return {
        "title": one.title[:MAX_HEADER],
        "state": one.state,
        "old": one.old.name if one.old else None,
        "new": one.new.name if one.new else None,
        "old_id": one.old.message_id if one.old else None,
        "new_id": one.new.message_id if one.new else None,
        "changelog": [line[:MAX_HEADER] for line in one.changelog[:MAX_ENTRIES]],
        "files": [
            {
                "path": file.path[:MAX_HEADER],
                "old_path": file.old_path[:MAX_HEADER],
                "state": file.state,
                "is_cut": file.is_cut,
            }
            for file in one.files[:MAX_ENTRIES]
        ],
    }


def find_gaps(compared: Sequence[PatchComparison]) -> Iterator[str]:
    """Yield what a comparison cannot say."""
    if any(file.is_cut for one in compared for file in one.files):
        yield "which lines differ in files that are too long: they are shown as replaced"
    if any(one.state in {"added", "dropped"} for one in compared):
        yield "whether a patch without a partner was split, merged or dropped"
    yield "whether the commit messages differ: diffs and titles are compared"

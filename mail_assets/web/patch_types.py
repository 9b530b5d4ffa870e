"""Types of the documents of commits, of series of patches, and of the patches of a list."""

from collections.abc import Sequence
from typing import Literal

# pydantic reads no other TypedDict before Python 3.12
from typing_extensions import TypedDict

from mail_assets.web.document_types import PatchStateDocument, SummaryDocument


class PersonDocument(TypedDict):
    """A person by name and address."""

    from_name: str
    from_email: str


class CreditDocument(PersonDocument):
    """A person who had a part in a commit: reviewed, acked, tested, reported and so on."""

    role: str


class MailDocument(TypedDict):
    """A message as one line shows it."""

    message_id: str
    subject: str
    from_name: str
    from_email: str
    sent_at: str
    lists: list[str]
    url: str


class ChangedFile(TypedDict):
    """A file that a commit changes; `change` is modified, added, deleted, renamed or copied."""

    path: str
    old_path: str
    change: str
    added: int
    removed: int
    is_binary: bool


class CommitLink(TypedDict):
    """A message of a commit: its part (`kind`), and the evidence of it."""

    message_id: str
    kind: str
    evidence: list[str]
    words: str
    mail: MailDocument | None


class ThanksDocument(MailDocument):
    """A message that says that a commit, or its patch, was applied; by the commit's id or not."""

    names_commit: bool


class ReleaseDocument(MailDocument):
    """An announcement of a release that lists the title of a commit."""

    name: str


class SaidDocument(TypedDict):
    """A sentence that was said of a patch: the characters `start` to `end` of a message.

    The first sentences are those of the patch itself, whose `part` is question.
    """

    text: str
    part: str
    message_id: str
    start: int
    end: int
    from_name: str
    from_email: str
    sent_at: str
    url: str


class CommitDocument(TypedDict):
    """A commit and the mail that decided it.

    An announcement of `released_in` does not show that it was mailed.
    """

    sha: str
    repository: str
    subject: str
    body: str
    author: PersonDocument
    committer: PersonDocument
    authored_at: str
    committed_at: str
    parents: list[str]
    credits: list[CreditDocument]
    picked_from: list[str]
    reverts: list[str]
    is_merge: bool
    files: list[ChangedFile]
    file_count: int
    added: int
    removed: int
    abstained: bool
    reason: str
    message_ids: list[str]
    links: list[CommitLink]
    thread_url: str | None
    messages: int
    people: int
    summary: SummaryDocument | None
    said: list[SaidDocument]
    patch: PatchStateDocument | None
    thanks: list[ThanksDocument]
    named_in: list[MailDocument]
    released_in: list[ReleaseDocument]
    left_out: dict[str, int]
    unknown: list[str]
    url: str


class ReasonDocument(TypedDict):
    """The sentence of a mail that says what became of a patch."""

    message_id: str
    text: str
    from_name: str
    sent_at: str
    url: str


class VersionDocument(TypedDict):
    """A version of a change: the patch of a mail, in the posting of a number."""

    posting: int
    message_id: str
    label: str
    version: int
    title: str
    sent_at: str
    from_name: str
    from_email: str
    is_taken_over: bool
    previous_id: str | None
    evidence: list[str]
    evidence_words: str
    state: str
    words: str
    changelog: list[str]
    added: int
    removed: int
    url: str


class ChangeDocument(TypedDict):
    """A change of a series: one patch, or the cover letter, in all its versions.

    Its state is that of the version which decides it.
    """

    number: int
    kind: str
    title: str
    state: str
    words: str
    reason: ReasonDocument | None
    commits: list[str]
    shas: list[str]
    versions: list[VersionDocument]


class PostingDocument(TypedDict):
    """A posting of a series: what its author sent at once."""

    number: int
    version: int
    message_id: str
    list: str
    sent_at: str
    from_name: str
    from_email: str
    patches: int
    changelog: Sequence[str]  # to mypy, `list` is the key above
    url: str


class ComparedFile(TypedDict):
    """A file in two versions of a patch."""

    path: str
    old_path: str
    state: Literal["same", "context", "changed", "added", "dropped"]
    lines: list[str]
    left_out: int
    is_cut: bool


class ComparedPatch(TypedDict):
    """A patch in two postings; the ids and labels are null if it was added or dropped."""

    title: str
    old_title: str
    state: Literal["same", "context", "changed", "added", "dropped"]
    old_id: str | None
    new_id: str | None
    changelog: list[str]
    files: list[ComparedFile]


class ComparisonDocument(TypedDict):
    """The difference of two postings, by their numbers; `problem` says why there is none."""

    old: int
    new: int
    problem: str
    changes: list[ComparedPatch]


class SeriesDocument(TypedDict):
    """A series of patches: its postings, oldest first, and its changes in all their versions."""

    series_id: str
    message_id: str
    title: str
    postings: list[PostingDocument]
    changes: list[ChangeDocument]
    comparison: ComparisonDocument | None
    url: str


class OpenPatch(TypedDict):
    """An open patch in its newest version."""

    message_id: str
    title: str
    label: str
    state: str
    words: str
    from_name: str
    from_email: str
    sent_at: str
    series_title: str
    series_url: str
    url: str


class OpenPatchesDocument(TypedDict):
    """A page of the open patches of a list, newest first.

    A page looks at a bounded number of messages: it may be short, or empty, and have a `next`.
    """

    list: str
    changes: Sequence[OpenPatch]
    list_url: str
    url: str
    next: str | None


class AppliedCommit(TypedDict):
    """A commit with the mail that decided it, and how that is known (`words`)."""

    sha: str
    repository: str
    subject: str
    author: PersonDocument
    committed_at: str
    words: str
    mail: MailDocument
    url: str


class AppliedDocument(TypedDict):
    """A page of the newest commits of a list that have a certain mail, which may be short."""

    list: str
    commits: Sequence[AppliedCommit]
    list_url: str
    atom_url: str
    url: str
    next: str | None

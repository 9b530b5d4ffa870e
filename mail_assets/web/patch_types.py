"""Types of the documents of commits, of series of patches, and of the patches of a list.

Types whose names end in Fields have the fields that pages and tools share. Tools show no addresses
and fewer details.
"""

from collections.abc import Sequence
from typing import Literal, NotRequired

# pydantic reads no other TypedDict before Python 3.12
from typing_extensions import TypedDict

from mail_assets.web.document_types import (
    PatchStateDocument,
    StatementDocument,
    SummaryDocument,
)


class PersonFields(TypedDict):
    """A person by name."""

    from_name: str
    namesake: str


class PersonDocument(PersonFields):
    """A person by name and address."""

    from_email: str


class CreditFields(PersonFields):
    """A person who had a part in a commit: reviewed, acked, tested, reported and so on."""

    role: str


class CreditDocument(CreditFields):
    """A person who had a part in a commit, by name and address."""

    from_email: str


class MailFields(TypedDict):
    """A message as one line shows it."""

    message_id: str
    subject: str
    from_name: str
    namesake: str
    sent_at: str
    url: str


class MailDocument(MailFields):
    """A message as one line shows it, with the address of its sender and its lists."""

    from_email: str
    lists: list[str]


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
    """A message that reports that a commit or its patch was applied; it may name the commit."""

    names_commit: bool
    has_standing: bool


class ReleaseDocument(MailDocument):
    """An announcement of a release that lists the title of a commit."""

    name: str
    has_standing: bool


class SaidDocument(TypedDict):
    """A sentence about a patch: the characters `start` to `end` of a message.

    Sentences of the patch itself come first; their `part` is "question".
    """

    text: str
    part: str
    message_id: str
    start: int
    end: int
    from_name: str
    from_email: str
    namesake: str
    sent_at: str
    url: str


class StatedDocument(StatementDocument):
    """A statement that decides about a commit; `label` is "decided", "said" or "superseded"."""

    label: str


class CommitFields(TypedDict):
    """A commit and what is known of its mail."""

    sha: str
    repository: str
    subject: str
    authored_at: str
    committed_at: str
    abstained: bool
    reason: str
    message_ids: list[str]
    left_out: dict[str, int]
    unknown: list[str]
    url: str


class CommitDocument(CommitFields):
    """A commit and the mail that decided it.

    `released_in` alone does not show that the commit was mailed.
    """

    body: str
    author: PersonDocument
    committer: PersonDocument
    parents: list[str]
    credits: list[CreditDocument]
    picked_from: list[str]
    reverts: list[str]
    is_merge: bool
    files: list[ChangedFile]
    file_count: int
    added: int
    removed: int
    links: list[CommitLink]
    thread_url: str | None
    messages: int
    people: int
    summary: SummaryDocument | None
    stated: list[StatedDocument]
    said: list[SaidDocument]
    patch: PatchStateDocument | None
    thanks: list[ThanksDocument]
    named_in: list[MailDocument]
    released_in: list[ReleaseDocument]


class ReasonDocument(TypedDict):
    """The sentence of a mail that says what became of a patch."""

    message_id: str
    text: str
    from_name: str
    from_email: NotRequired[str]  # tools have no addresses
    namesake: str
    sent_at: str
    url: str


class VersionFields(TypedDict):
    """A version of a change: the patch of a mail; `evidence` joins it to the one before."""

    message_id: str
    label: str
    version: int
    title: str
    sent_at: str
    from_name: str
    namesake: str
    is_taken_over: bool
    contested: bool
    previous_id: str | None
    evidence: list[str]
    state: str
    words: str
    url: str


class VersionDocument(VersionFields):
    """A version of a change: the patch of a mail, in the posting of a number."""

    posting: int
    from_email: str
    evidence_words: str
    changelog: list[str]
    added: int
    removed: int


class ChangeFields(TypedDict):
    """A change of a series: a patch or the cover letter, with the state of its deciding version."""

    number: int
    kind: str
    title: str
    state: str
    words: str
    reason: ReasonDocument | None
    commits: list[str]
    shas: list[str]


class ChangeDocument(ChangeFields):
    """A change of a series: one patch, or the cover letter, in all its versions."""

    versions: list[VersionDocument]


class PostingFields(TypedDict):
    """A posting of a series: what its author sent at once."""

    number: int
    version: int
    message_id: str
    list: str
    sent_at: str
    from_name: str
    namesake: str
    patches: int
    url: str


class PostingDocument(PostingFields):
    """A posting of a series, with the changelog of its cover letter."""

    from_email: str
    changelog: Sequence[str]  # to mypy, `list` is a key of the type above


class ComparedFileFields(TypedDict):
    """A file in two versions of a patch; `context`: only the lines around the changes differ."""

    path: str
    old_path: str
    state: Literal["same", "context", "changed", "added", "dropped"]
    is_cut: bool


class ComparedFile(ComparedFileFields):
    """A file in two versions of a patch, with its lines."""

    lines: list[str]
    left_out: int


class ComparedPatchFields(TypedDict):
    """A patch in two versions; the id is null where only the other one has it."""

    title: str
    old_title: str
    state: Literal["same", "context", "changed", "added", "dropped"]
    old_id: str | None
    new_id: str | None
    changelog: list[str]


class ComparedPatch(ComparedPatchFields):
    """A patch in two postings, with its files."""

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
    namesake: str
    sent_at: str
    series_title: str
    series_url: str
    url: str


class OpenPatchesDocument(TypedDict):
    """A page of open patches, newest first; it may be short or empty and have a `next`."""

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
    """A page of the newest commits of a list with certain mail; it may be short."""

    list: str
    commits: Sequence[AppliedCommit]
    list_url: str
    atom_url: str
    url: str
    next: str | None

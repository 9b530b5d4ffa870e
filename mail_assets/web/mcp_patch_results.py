"""Results of the tools about patches: their structure, and their text.

Results contain the same documents as pages (patch_types.py), without addresses. A document passes
through privacy.py before it becomes a result.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from pydantic import BaseModel
from typing_extensions import TypedDict

from mail_assets.errors import name_some
from mail_assets.reading.series import NO_STANDING
from mail_assets.text.untrusted import quote_lines as fence
from mail_assets.web.document_types import Document
from mail_assets.web.mcp_results import Result
from mail_assets.web.mcp_text import CONTESTED, MAX_HEADER, WARNING, Described, write_id
from mail_assets.web.page_parts import name_apart
from mail_assets.web.patch_types import (
    ChangeFields,
    CommitFields,
    ComparedFileFields,
    ComparedPatchFields,
    CreditFields,
    MailFields,
    PersonFields,
    PostingFields,
    StatedDocument,
    VersionFields,
)

#: Most entries of each list in a result; `left_out` counts the rest.
MAX_ENTRIES = 30
#: Most characters of a text in a result; those of ids and links are not counted.
MAX_TEXT = 400
#: Most changed files per patch that the overview of a comparison names.
MAX_FILES = 3
_SIGNS = "signs: first the version that has the line (- older, + newer), then that in its patch"
#: Kind of a link of a commit -> words.
_KINDS = {
    "applied": "applied from",
    "version": "another version",
    "discussion": "discussed in",
    "report": "reported in",
}


class MailOfCommit(MailFields):
    """A message of a commit: applied (the patch it came from), version, discussion or report."""

    kind: str
    evidence: list[str]


class PatchChange(ChangeFields):
    """A patch or cover letter in its versions, oldest first; `left_out` counts older ones.

    `reason_id` is the mail that decides the state, or the version that supersedes it.
    `has_standing` is whether the sender of the mail commits here or decided on patches of
    three others in three months; null if no mail decides.
    """

    reason_id: str | None
    has_standing: bool | None
    versions: list[VersionFields]
    left_out: int


class Sentence(BaseModel):
    """A sentence and its message: of the patch and its answers, else of the whole thread."""

    part: str
    text: str
    message_id: str


class SaidApplied(MailFields):
    """Mail that reports that a patch was applied; `names_commit`: it names this commit by id.

    `message_ids` are the patches that it is about, if that is certain.
    """

    names_commit: bool
    has_standing: bool
    said: str
    message_ids: list[str]


class ReleaseOfCommit(MailFields):
    """An announcement of a release that lists the title of the commit."""

    name: str
    has_standing: bool


class ExplainedCommit(CommitFields):
    """A commit and the mail about it; `abstained`: no mail is certain, for a reason.

    `asked` is the id as it was given. `followed` is the commit that it carries over, if the mail
    belongs to that one. `left_out` counts further `thanks` and `named_in`.
    `unknown` are facts that the archive does not have.
    """

    asked: str
    author: PersonFields
    committer: PersonFields
    credits: list[CreditFields]
    followed: str | None
    mails: list[MailOfCommit]
    changes: list[PatchChange]
    thread_id: str | None
    stated: list[StatedDocument]
    summary: list[Sentence]
    thanks: list[SaidApplied]
    named_in: list[MailFields]
    released_in: list[ReleaseOfCommit]


class UnknownCommit(TypedDict):
    """An id, as it was given, that is no commit of the repositories here."""

    asked: str
    sha: None
    abstained: bool
    reason: str
    unknown: list[str]


class WhyResult(Result):
    """The commits as they were asked for."""

    commits: list[ExplainedCommit | UnknownCommit]


class SeriesResult(Result):
    """The series of a mail: `part` are its own patches, `beside` the other ones."""

    message_id: str
    title: str
    postings: list[PostingFields]
    part: list[PatchChange]
    beside: list[PatchChange]
    left_out: int
    unknown: list[str]


class ComparedVersions(ComparedPatchFields):
    """A patch in two versions; `old` and `new` are their labels, as the ids are."""

    old: str | None
    new: str | None
    files: list[ComparedFileFields]


class ComparisonResult(Result):
    """The differences between two versions; the lines are in the text."""

    old_id: str
    new_id: str
    compared: list[ComparedVersions]
    left_out: int
    unknown: list[str]


def shorten(value: Any) -> Any:
    """Return a document with at most MAX_ENTRIES of each list, and MAX_TEXT of each text."""
    match value:
        case str():
            return value[:MAX_TEXT]
        case list():
            return [shorten(one) for one in value[:MAX_ENTRIES]]
        case dict():
            whole = ("_id", "_ids", "url")
            return {k: one if k.endswith(whole) else shorten(one) for k, one in value.items()}
    return value


def _join(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def cut(lines: Iterable[str], most: int) -> str:
    """Return lines with about `most` characters; the last one reports a cut."""
    kept: list[str] = []
    for line in lines:
        most -= len(line) + 1
        if most < 0 and kept:
            kept.append("cut: ask for more tokens")
            break
        kept.append(line)
    return "\n".join(kept)


def write_commit(made: Described, number: int, one: Document) -> Iterator[str]:
    """Yield the lines of a commit, or of an id that is no commit."""
    if one["sha"] is None:
        yield f"[{number}] commit {one['asked']}: {one['reason']}"
        return
    where = f" of repository {one['repository']}" if one["repository"] else ""
    yield f"[{number}] commit {one['sha']}{where}"
    if one["followed"]:
        yield f"it carries over commit {one['followed']}, whose mail this is"
    yield from fence(one["subject"][:MAX_HEADER])
    author = _join(name_apart(one["author"])[:MAX_HEADER], one["authored_at"][:10])
    committer = _join(name_apart(one["committer"])[:MAX_HEADER], one["committed_at"][:10])
    yield from fence(f"By {author}; committed by {committer}")
    for credit in one["credits"]:
        yield from fence(f"{credit['role']} by {name_apart(credit)}"[:MAX_HEADER])
    if one["abstained"]:
        yield "no mail is certain"
    versions = {x["message_id"] for change in one["changes"] for x in change["versions"]}
    for mail in one["mails"]:
        if mail["kind"] == "version" and mail["message_id"] in versions:
            continue
        said = _KINDS.get(mail["kind"], mail["kind"])
        yield f"{said} message {write_id(mail['message_id'])} ({', '.join(mail['evidence'])})"
        yield made.link("message", mail["message_id"])
        yield from _write_header(mail)
    yield from _write_unknown(one)
    applied = {mail["message_id"] for mail in one["mails"] if mail["kind"] == "applied"}
    for change in one["changes"]:
        yield from _write_change(made, change, applied)
    yield from _write_mentions(one)
    if one["thread_id"]:
        yield f"discussed in thread {write_id(one['thread_id'])}"
        yield made.link("thread", one["thread_id"])
        for stated in one["stated"]:
            who = _join(f"{stated['who']} ({stated['namesake']})", stated["said_at"][:10])
            yield from fence(f"{who}: {' '.join(stated['text'].split())}")
            yield f"{stated['label']} in message {write_id(stated['message_id'])}"
        for sentence in one["summary"]:
            yield from fence(f"{sentence['part']}: {' '.join(sentence['text'].split())}")
            yield f"in message {write_id(sentence['message_id'])}"


def _write_header(mail: Document) -> Iterator[str]:
    about = _join(name_apart(mail), mail["sent_at"][:10], mail["subject"])
    yield from fence(about[:MAX_HEADER])


def _write_unknown(one: Document) -> Iterator[str]:
    if one["unknown"]:
        yield "not known:"
        yield from fence("\n".join(one["unknown"]))


def _write_mentions(one: Document) -> Iterator[str]:
    for thanks in one["thanks"]:
        what = "this commit" if thanks["names_commit"] else "the patch"
        of = "".join(f" from message {write_id(one)}" for one in thanks["message_ids"])
        who = _doubt(thanks)
        yield f"message {write_id(thanks['message_id'])}{who} says that {what} was applied{of}"
        yield from fence(f"{_join(name_apart(thanks), thanks['sent_at'][:10])}: {thanks['said']}")
    if more := one["left_out"]["thanks"]:
        yield f"{more} more say so"
    for about in one["named_in"]:
        yield f"named, or its title used, in message {write_id(about['message_id'])}"
        yield from _write_header(about)
    if more := one["left_out"]["named_in"]:
        yield f"named, or its title used, in {more} more"
    for release in one["released_in"]:
        announces = "announces a release and lists its title"
        yield f"message {write_id(release['message_id'])}{_doubt(release)} {announces}"
        yield from fence(_join(release["name"], name_apart(release), release["sent_at"][:10]))


def _doubt(one: Document) -> str:
    return f" by somebody who {NO_STANDING}" if one["has_standing"] is False else ""


def _write_change(
    made: Described, change: Document, applied: Collection[str] = ()
) -> Iterator[str]:
    what = "cover letter" if change["kind"] == "cover" else "patch"
    yield f"versions of a {what}, oldest first:"
    yield from fence(change["title"][:MAX_HEADER])
    if change["left_out"]:
        yield f"{change['left_out']} older ones are left out"
    for one in change["versions"]:
        why = f", joined by {', '.join(one['evidence'])}" if one["evidence"] else ""
        other = ", by another sender" if one["is_taken_over"] else ""
        other += f", {CONTESTED.lower()}" if one["contested"] else ""
        landed = "; this one was applied" if one["message_id"] in applied else ""
        about = f"{one['label']}, {one['sent_at'][:10]}{why}{other}{landed}"
        yield f"{about}: message {write_id(one['message_id'])}"
        yield made.link("message", one["message_id"])
    yield f"state: {_say_state(change)}"
    if change["commits"]:
        yield "a repository here has the commit"
    if reason := change["reason"]:
        said_in = f"said in message {write_id(reason['message_id'])}{_doubt(change)}"
        yield f"{said_in}; an address is easily forged"
        sender = _join(name_apart(reason), reason["sent_at"][:10])
        yield from fence(f"{sender}: {reason['text']}")
    elif change["reason_id"]:
        yield f"by a newer version, message {write_id(change['reason_id'])}"


def _say_state(change: Document) -> str:
    shas = f" as {', '.join(map(write_id, change['shas']))}" if change["shas"] else ""
    return f"{change['state']}{shas}"


def write_series(made: Described, one: Document) -> Iterator[str]:
    """Yield the lines of a series."""
    yield WARNING
    yield ""
    yield f"series of message {write_id(one['message_id'])}"
    yield made.link("message", one["message_id"])
    yield from fence(one["title"][:MAX_HEADER])
    yield "what was sent, oldest first:"
    for posting in one["postings"]:
        patches = f"{posting['patches']} patch{'' if posting['patches'] == 1 else 'es'}"
        when = f"v{posting['version']}, {posting['sent_at'][:10]}, {patches}"
        yield f"{when}: message {write_id(posting['message_id'])}"
    yield ""
    for change in one["part"]:
        yield from _write_change(made, change)
    yield from _write_unknown(one)
    if one["beside"]:
        yield ""
        yield "other patches of the series:"
    for change in one["beside"]:
        own = [x for x in change["versions"] if not x["is_taken_over"]]
        newest = (own or change["versions"])[-1]
        yield f"{newest['label']}, {_say_state(change)}: message {write_id(newest['message_id'])}"
        yield from fence(change["title"][:MAX_HEADER])
    if one["left_out"]:
        yield f"{one['left_out']} more"


def _sum_up(one: Document) -> str:
    files = [file["path"] for file in one["files"]]
    which = f": {name_some(files, MAX_FILES)}" if one["state"] == "changed" else ""
    versions = f"{one['old'] or 'none'} -> {one['new'] or 'none'}"
    return f"{versions} {one['state']}{which}: {one['title'][:MAX_HEADER]}"


def write_comparison(
    made: Described, one: Document, lines: Sequence[str], first: int, characters: int
) -> None:
    """Write a comparison, from the line `first` on, in about `characters` characters."""
    head = [WARNING, ""]
    head += [f"message {write_id(one['old_id'])} compared with message {write_id(one['new_id'])}"]
    head += [made.link("message", one["old_id"]), made.link("message", one["new_id"])]
    head += _write_unknown(one)
    if first == 0 and len(one["compared"]) > 1 and sum(map(len, lines)) > characters:
        head += ["patches:", *(x for some in one["compared"] for x in fence(_sum_up(some)))]
        head += [f"{one['left_out']} more"] * bool(one["left_out"])
    head.append(_SIGNS)
    left = characters - sum(map(len, head))
    at = first
    body: list[str] = []
    for line in lines[first:]:
        marked = [*fence(line)]
        left -= sum(len(x) + 1 for x in marked)
        if left < 0 and body:
            break
        body += marked
        at += 1
    head += ["", f"lines {first} to {at} of {len(lines)}"]
    if at < len(lines):
        made.leave_out(f"{len(lines) - at} more lines: go on with first {at}", first=at)
    made.text = "\n".join([*head, *body])

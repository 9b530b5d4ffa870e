"""Tools about commits and patches: why a commit is there, the versions of a patch, what changed.

Each says what it does not know: mail that is not in the archive, versions that nothing joins, a
state that nobody stated. Names, titles and diffs are by strangers, as mail is, and marked like it.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Annotated, Any

from pydantic import BaseModel, Field

from mail_assets.mail.message.ids import normalize_id
from mail_assets.mail.patches.interdiff import Version, compare_series, format_comparison
from mail_assets.reading.decisions import Decision, add_discussion, explain_ids
from mail_assets.reading.patches import find_previous, read_versions
from mail_assets.reading.series import NO_STANDING, SeriesView, find_pair, read_series
from mail_assets.search.language.request import MAX_QUERY, check_text
from mail_assets.store.objects import ObjectStore
from mail_assets.store.open import open_store
from mail_assets.web.commit_documents import describe_said
from mail_assets.web.document_types import Document
from mail_assets.web.documents import Documents
from mail_assets.web.mcp_patch_results import (
    MAX_ENTRIES,
    MAX_SAID,
    ComparedPatch,
    ComparisonFields,
    ComparisonResult,
    ExplainedCommit,
    PatchChange,
    Sentence,
    SeriesFields,
    SeriesResult,
    Statement,
    WhyResult,
    describe_about,
    describe_change,
    describe_comparison,
    describe_mails,
    describe_no_commit,
    describe_posting,
    describe_sender,
    find_gaps,
    find_others,
    ids_of,
)
from mail_assets.web.mcp_results import Id, ResultMaker, Tokens, find_by_id
from mail_assets.web.mcp_text import (
    CHARACTERS_OF_TOKEN,
    MAX_HEADER,
    WARNING,
    Described,
    fence,
    write_id,
)
from mail_assets.web.responses import ServingError

#: Commits of one call.
MAX_COMMITS = 20
#: Changed files that the overview of a comparison names of a patch.
MAX_FILES = 3
_SIGNS = "signs: first the version that has the line (- older, + newer), then that in its patch"

_SHA = re.compile(r"[0-9a-fA-F]{7,64}")
#: Kind of a link of a commit -> how it is said.
_KINDS = {
    "applied": "applied from",
    "version": "another version",
    "discussion": "discussed in",
    "report": "reported in",
}


class PatchTools:
    """The tools about patches; each public method is a tool of its name.

    `site` is the base of links, "" for paths alone.
    """

    def __init__(self, documents: Documents, results: ResultMaker, site: str = "") -> None:
        self._documents = documents
        self._results = results
        self._site = site.rstrip("/")

    @cached_property
    def _store(self) -> ObjectStore:
        return open_store(self._documents.service.options.store)

    def why(
        self,
        commits: Annotated[
            list[str],
            Field(
                min_length=1,
                max_length=MAX_COMMITS,
                description="ids of commits, 7 digits or more",
            ),
        ],
        tokens: Tokens = 2_000,
    ) -> WhyResult:
        """Find the mail that decided a commit: versions, discussion, review, releases.

        Takes ids of commits alone. There is no checkout here: for a line of a file ask git blame
        for its commit first.
        """
        names = [name.strip().lower() for name in commits]
        for name in names:
            if not _SHA.fullmatch(name):
                what = "is no id of a commit: give 7 to 64 hexadecimal digits"
                raise ServingError(400, "bad_request", f"{name[:80]!r} {what}")
        names = [*dict.fromkeys(names)]
        found = self._documents.service.read(explain_ids, names)
        lists = self._documents.service.options.lists
        made = Described(self._site)
        explained = []
        for name in names:
            decision = found.get(name)
            if decision is not None:
                decision = self._documents.service.read(add_discussion, decision, lists)
            explained.append(self._explain(name, decision))
        blocks: list[str] = [WARNING]
        left = self._results.room(tokens) * CHARACTERS_OF_TOKEN
        for place, one in enumerate(explained):
            block = _cut(
                _write_commit(made, place + 1, one), max(left // (len(explained) - place), 400)
            )
            left -= len(block)
            blocks.append(block)
        made.text = "\n\n".join(blocks)
        return WhyResult(**_fields(self._results.finish(made)), commits=explained)

    def get_series(self, message_id: Id, tokens: Tokens = 2_000) -> SeriesResult:
        """Show all versions of a patch and its series, and what became of each, with who says so.

        Takes the Message-ID of any patch or cover letter. A state without words is nobody's word.
        """
        id, series = find_by_id(self._find_series, message_id)
        others = find_others(series, id)
        document = self._publish(
            {
                "message_id": id,
                "title": series.title[:MAX_HEADER],
                "postings": [describe_posting(some) for some in series.postings[-MAX_ENTRIES:]],
                "part": [describe_change(one) for one in series.change_of(id)[:MAX_ENTRIES]],
                "beside": [describe_change(one) for one in others[:MAX_ENTRIES]],
                "left_out": max(0, len(others) - MAX_ENTRIES),
                "unknown": [*series.find_unknown(id), *self._find_contested(id)],
            },
            ids_of(x for some in series.postings for x in some),
        )
        fields = SeriesFields.model_validate(document)
        made = Described(self._site)
        room = self._results.room(tokens) * CHARACTERS_OF_TOKEN
        made.text = _cut(_write_series(made, fields), room)
        return SeriesResult(**_fields(self._results.finish(made)), **_fields(fields))

    def compare_versions(
        self,
        message_id: Id,
        other_id: Annotated[
            str, Field(max_length=2_000, description="Message-ID of the newer version")
        ] = "",
        old_version: Annotated[
            int | None, Field(ge=1, le=100_000, description="instead: number, as 2 of v2")
        ] = None,
        new_version: Annotated[
            int | None, Field(ge=1, le=100_000, description="number of the newer one")
        ] = None,
        first: Annotated[
            int, Field(ge=0, le=10_000_000, description="first line of the differences")
        ] = 0,
        tokens: Tokens = 2_000,
    ) -> ComparisonResult:
        """Show what changed between two versions of a patch or series, as git range-diff does.

        Two Message-IDs, older first; or one and the numbers of two versions; or one alone: it is
        compared with the version before it. The first sign of a line says which version has it.
        """
        numbers = (old_version, new_version)
        if other_id and numbers != (None, None):
            raise ServingError(400, "bad_request", "give other_id or numbers of versions, not both")
        ids = self._name_pair(message_id, other_id, numbers)
        (old_id, old), (new_id, new) = (find_by_id(self._read_versions, one) for one in ids)
        compared = compare_series(old, new)
        contested = (x for one in (old_id, new_id) for x in self._find_contested(one))
        document = self._publish(
            {
                "old_id": old_id,
                "new_id": new_id,
                "compared": [describe_comparison(one) for one in compared[:MAX_ENTRIES]],
                "left_out": max(0, len(compared) - MAX_ENTRIES),
                "unknown": [*find_gaps(compared), *dict.fromkeys(contested)],
                "lines": format_comparison(compared),
            },
            [old_id, new_id, *(one.message_id for one in (*old, *new))],
        )
        lines = document.pop("lines").split("\n")[:-1]
        fields = ComparisonFields.model_validate(document)
        made = Described(self._site)
        room = self._results.room(tokens) * CHARACTERS_OF_TOKEN
        _write_comparison(made, fields, lines, first, room)
        return ComparisonResult(**_fields(self._results.finish(made)), **_fields(fields))

    def _name_pair(
        self, message_id: str, other_id: str, numbers: tuple[int | None, int | None]
    ) -> tuple[str, str]:
        if other_id:
            return message_id, other_id

        def find(id: str) -> tuple[str, str]:
            normal = self._check(id)
            if numbers == (None, None):
                return self._documents.service.read(find_previous, normal), normal
            return self._documents.service.read(find_pair, normal, *numbers)

        return find_by_id(find, message_id)

    def _read_versions(self, id: str) -> tuple[str, list[Version]]:
        normal = self._check(id)
        return normal, self._documents.service.read(read_versions, self._store, normal)

    def _find_series(self, id: str) -> tuple[str, SeriesView]:
        normal = self._check(id)
        series = self._documents.service.read(read_series, normal)
        if series is None:
            message = "is no patch here: no version and no series is known of it"
            raise ServingError(404, "not_found", f"message {id} {message}")
        return normal, series

    def _check(self, id: str) -> str:
        check_text("id", id, MAX_QUERY)
        self._documents.read_copies(id)
        return normalize_id(id)

    def _find_contested(self, message_id: str) -> Iterator[str]:
        if self._documents.read_copies(message_id)[0]["text"] is not None:
            yield "which text is meant: several claim one Message-ID; the first is read"

    def _publish(self, document: Document, ids: Collection[str]) -> Document:
        return self._documents.publication.publish(document, ids)

    def _explain(self, asked: str, decision: Decision | None) -> ExplainedCommit:
        if decision is None:
            reason = "no repository of these archives has this commit"
            return ExplainedCommit(**describe_no_commit(asked, reason))
        commit = decision.commit
        said = describe_said(decision, self._documents.publication)
        summary = None
        if decision.thread_id and not said:
            summary = self._documents.read_summary(decision.thread_id)
        ids = ids_of(x for change in decision.versions for x in change.versions)
        ids |= decision.mails.keys()
        ids |= {one.mail.message_id for one in decision.thanks}
        ids |= {one.mail.message_id for one in decision.releases}
        ids |= {one.message_id for one in decision.naming}
        document = self._publish(
            {
                "asked": asked,
                "sha": commit.sha,
                "repository": commit.repository or None,
                "subject": commit.subject[:MAX_HEADER],
                "author_name": commit.author_name[:MAX_HEADER],
                "authored_at": commit.authored_at.isoformat(),
                "committer_name": commit.committer_name[:MAX_HEADER],
                "committed_at": commit.committed_at.isoformat(),
                "credits": [
                    f"{one.role} by {one.person}"[:MAX_HEADER]
                    for one in commit.credits[:MAX_ENTRIES]
                ],
                "followed": decision.followed or None,
                "abstained": decision.abstained,
                "reason": decision.reason,
                "mails": [*describe_mails(decision)][:MAX_ENTRIES],
                "changes": [describe_change(one) for one in decision.versions[:MAX_ENTRIES]],
                "thread_id": decision.thread_id or None,
                "thanks": [
                    {
                        **describe_sender(one.mail),
                        "said": one.said[:MAX_SAID],
                        "names_commit": one.by_id,
                        "message_ids": [*one.patches],
                    }
                    for one in decision.thanks[:MAX_ENTRIES]
                ],
                "named_in": [describe_about(one) for one in decision.naming[:MAX_ENTRIES]],
                "released_in": [
                    {**describe_sender(one.mail), "name": one.name[:MAX_HEADER]}
                    for one in decision.releases[:MAX_ENTRIES]
                ],
                "left_out": {
                    "thanks": decision.left_out["thanks"],
                    "named_in": decision.left_out["named_in"]
                    + max(0, len(decision.naming) - MAX_ENTRIES),
                },
                "unknown": decision.find_unknown(),
            },
            ids,
        )
        sentences = summary["sentences"] if summary else said
        return ExplainedCommit(
            **document, summary=[Sentence.model_validate(x) for x in sentences[:MAX_ENTRIES]]
        )


def _fields(one: BaseModel) -> dict[str, Any]:
    return {name: getattr(one, name) for name in type(one).model_fields}


def _join(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def _cut(lines: Iterable[str], most: int) -> str:
    """Return lines in about so many characters; the last one says if any are left out."""
    kept: list[str] = []
    for line in lines:
        most -= len(line) + 1
        if most < 0 and kept:
            kept.append("cut: ask for more tokens")
            break
        kept.append(line)
    return "\n".join(kept)


def _write_commit(made: Described, number: int, one: ExplainedCommit) -> Iterator[str]:
    if one.sha is None:
        yield f"[{number}] commit {one.asked}: {one.reason}"
        return
    where = f" of repository {one.repository}" if one.repository else ""
    yield f"[{number}] commit {one.sha}{where}"
    if one.followed:
        yield f"it carries over commit {one.followed}, whose mail this is"
    yield from fence(one.subject)
    author = _join(one.author_name, (one.authored_at or "")[:10])
    committer = _join(one.committer_name, (one.committed_at or "")[:10])
    yield from fence(f"By {author}; committed by {committer}")
    for credit in one.credits:
        yield from fence(credit)
    if one.abstained:
        yield "no mail is certain"
    versions = {x.message_id for change in one.changes for x in change.versions}
    for mail in one.mails:
        if mail.kind == "version" and mail.message_id in versions:
            continue
        said = _KINDS.get(mail.kind, mail.kind)
        yield f"{said} message {write_id(mail.message_id)} ({', '.join(mail.evidence)})"
        yield made.link("message", mail.message_id)
        yield from fence(_join(mail.from_name, mail.sent_at[:10], mail.subject)[:MAX_HEADER])
    if one.unknown:
        yield "not known:"
        yield from fence("\n".join(one.unknown))
    applied = {mail.message_id for mail in one.mails if mail.kind == "applied"}
    for change in one.changes:
        yield from _write_change(made, change, applied)
    for thanks in one.thanks:
        what = "this commit" if thanks.names_commit else "the patch"
        of = "".join(f" from message {write_id(one)}" for one in thanks.message_ids)
        yield f"message {write_id(thanks.message_id)} says that {what} was applied{of}"
        yield from fence(f"{_join(thanks.from_name, thanks.sent_at[:10])}: {thanks.said}")
    if more := one.left_out["thanks"]:
        yield f"{more} more say so"
    for about in one.named_in:
        yield f"named, or its patch answered, in message {write_id(about.message_id)}"
        yield from fence(_join(about.from_name, about.sent_at[:10], about.subject)[:MAX_HEADER])
    if more := one.left_out["named_in"]:
        yield f"named, or its patch answered, in {more} more"
    for release in one.released_in:
        yield f"message {write_id(release.message_id)} announces a release and lists its title"
        yield from fence(_join(release.name, release.from_name, release.sent_at[:10]))
    if one.thread_id:
        yield f"discussed in thread {write_id(one.thread_id)}"
        yield made.link("thread", one.thread_id)
        for sentence in one.summary:
            yield from fence(f"{sentence.part}: {' '.join(sentence.text.split())}")
            yield f"in message {write_id(sentence.message_id)}"


def _write_change(
    made: Described, change: PatchChange, applied: Collection[str] = ()
) -> Iterator[str]:
    what = "cover letter" if change.kind == "cover" else "patch"
    yield f"versions of a {what}, oldest first:"
    yield from fence(change.title)
    if change.left_out:
        yield f"{change.left_out} older ones are left out"
    for one in change.versions:
        why = f", joined by {', '.join(one.evidence)}" if one.evidence else ""
        other = ", by another sender" if one.by_another_sender else ""
        landed = "; this one was applied" if one.message_id in applied else ""
        about = f"{one.label}, {one.sent_at[:10]}{why}{other}{landed}"
        yield f"{about}: message {write_id(one.message_id)}"
        yield made.link("message", one.message_id)
    yield from _write_statement(change.statement)


def _write_statement(one: Statement) -> Iterator[str]:
    shas = f" as {', '.join(map(write_id, one.shas))}" if one.shas else ""
    yield f"state: {one.state}{shas}"
    if one.in_repository:
        yield "a repository here has the commit"
    if one.said and one.message_id:
        who = f" by somebody who {NO_STANDING}" if one.has_standing is False else ""
        yield f"said in message {write_id(one.message_id)}{who}; an address is easily forged"
        yield from fence(f"{_join(one.said_by or '', (one.said_at or '')[:10])}: {one.said}")
    elif one.message_id:
        yield f"by a newer version, message {write_id(one.message_id)}"


def _write_series(made: Described, one: SeriesFields) -> Iterator[str]:
    yield WARNING
    yield ""
    yield f"series of message {write_id(one.message_id)}"
    yield made.link("message", one.message_id)
    yield from fence(one.title)
    yield "what was sent, oldest first:"
    for posting in one.postings:
        patches = f"{posting.patches} patch{'' if posting.patches == 1 else 'es'}"
        when = f"v{posting.version}, {posting.sent_at[:10]}, {patches}"
        yield f"{when}: message {write_id(posting.message_id)}"
    yield ""
    for change in one.part:
        yield from _write_change(made, change)
    if one.unknown:
        yield "not known:"
        yield from fence("\n".join(one.unknown))
    if one.beside:
        yield ""
        yield "other patches of the series:"
    for change in one.beside:
        own = [x for x in change.versions if not x.by_another_sender]
        newest = (own or change.versions)[-1]
        shas = f" as {', '.join(map(write_id, change.statement.shas))}"
        state = f"{change.statement.state}{shas if change.statement.shas else ''}"
        yield f"{newest.label}, {state}: message {write_id(newest.message_id)}"
        yield from fence(change.title)
    if one.left_out:
        yield f"{one.left_out} more"


def _sum_up(one: ComparedPatch) -> str:
    files = [file.path for file in one.files if file.state != "same"]
    which = f": {', '.join(files[:MAX_FILES])}" if one.state == "changed" else ""
    more = f" and {len(files) - MAX_FILES} more" if which and len(files) > MAX_FILES else ""
    return f"{one.old or 'none'} -> {one.new or 'none'} {one.state}{which}{more}: {one.title}"


def _write_comparison(
    made: Described, one: ComparisonFields, lines: Sequence[str], first: int, characters: int
) -> None:
    head = [WARNING, ""]
    head += [f"message {write_id(one.old_id)} compared with message {write_id(one.new_id)}"]
    head += [made.link("message", one.old_id), made.link("message", one.new_id)]
    if one.unknown:
        head += ["not known:", *fence("\n".join(one.unknown))]
    if first == 0 and len(one.compared) > 1 and sum(map(len, lines)) > characters:
        head += ["patches:", *(x for some in one.compared for x in fence(_sum_up(some)))]
        head += [f"{one.left_out} more"] * bool(one.left_out)
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

"""Tools about commits and patches: the mail of a commit, versions of a patch, differences.

Each tool reports what it does not know: mail that is not in the archive, versions that nothing
links, a state that nobody stated. Names, titles and diffs are written by strangers and marked like
mail.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Annotated

from pydantic import Field

from mail_assets.mail.message.ids import normalize_id
from mail_assets.mail.patches.interdiff import (
    PatchComparison,
    Version,
    compare_series,
    format_comparison,
)
from mail_assets.reading.decisions import Decision, add_discussion, explain_ids
from mail_assets.reading.patches import find_previous, read_versions
from mail_assets.reading.series import Change, SeriesView, find_pair, read_series
from mail_assets.search.language.request import MAX_QUERY, check_text
from mail_assets.web.commit_documents import (
    describe_commit,
    describe_credit,
    describe_mail,
    describe_person,
    describe_release,
    describe_said,
    describe_stated,
    describe_thanks,
    find_ids,
    ids_of_versions,
)
from mail_assets.web.document_types import Document
from mail_assets.web.documents import Documents
from mail_assets.web.mcp_patch_results import (
    MAX_ENTRIES,
    ComparisonResult,
    SeriesResult,
    WhyResult,
    cut,
    shorten,
    write_commit,
    write_comparison,
    write_series,
)
from mail_assets.web.mcp_results import Id, ResultMaker, Tokens, find_by_id
from mail_assets.web.mcp_text import CHARACTERS_OF_TOKEN, WARNING, Described
from mail_assets.web.responses import ServingError
from mail_assets.web.series_documents import (
    describe_change,
    describe_compared,
    describe_file,
    describe_posting,
    describe_version,
)

#: Most commits of one call.
MAX_COMMITS = 20
_SHA = re.compile(r"[0-9a-fA-F]{7,64}")


class PatchTools:
    """The tools about patches; each public method is a tool.

    `site` is the base of links; "" makes links paths.
    """

    def __init__(self, documents: Documents, results: ResultMaker, site: str = "") -> None:
        self._documents = documents
        self._results = results
        self._site = site.rstrip("/")

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

        Takes ids of commits only. There is no checkout here: for a line of a file, find its commit
        with git blame first.
        """
        names = [name.strip().lower() for name in commits]
        for name in names:
            if not _SHA.fullmatch(name):
                what = "is no id of a commit: give 7 to 64 hexadecimal digits"
                raise ServingError(400, "bad_request", f"{name[:80]!r} {what}")
        names = [*dict.fromkeys(names)]
        found = self._documents.service.read(explain_ids, names)
        lists = self._documents.service.options.lists
        explained: list[Document] = []
        for name in names:
            decision = found.get(name)
            if decision is None:
                reason = "no repository of these archives has this commit"
                unknown = {"asked": name, "sha": None, "abstained": True, "reason": reason}
                explained.append({**unknown, "unknown": [f"the commit: {reason}"]})
                continue
            decision = self._documents.service.read(add_discussion, decision, lists)
            explained.append(self._explain(name, decision))
        made = Described(self._site)
        blocks: list[str] = [WARNING]
        left = self._results.room(tokens) * CHARACTERS_OF_TOKEN
        for place, one in enumerate(explained):
            most = max(left // (len(explained) - place), 400)
            blocks.append(cut(write_commit(made, place + 1, one), most))
            left -= len(blocks[-1])
        made.text = "\n\n".join(blocks)
        result = self._results.finish(made)
        return WhyResult.model_validate({**dict(result), "commits": explained})

    def get_series(self, message_id: Id, tokens: Tokens = 2_000) -> SeriesResult:
        """Show all versions of a patch and its series, and what became of each, with who says so.

        Takes the Message-ID of any patch or cover letter. A state without words: nobody stated it.
        """
        id, series = find_by_id(self._find_series, message_id)
        own = series.change_of(id)
        numbers = {one.number for one in own}
        others = [one for one in series.changes if one.number not in numbers]
        postings = [
            {**describe_posting(n, some), "from_email": some[0].from_email}
            for n, some in enumerate(series.postings)
        ]
        document = self._publish(
            {
                "message_id": id,
                "title": series.title,
                "postings": postings[-MAX_ENTRIES:],
                "part": [_describe_change(one) for one in own],
                "beside": [_describe_change(one) for one in others],
                "left_out": max(0, len(others) - MAX_ENTRIES),
                "unknown": [*series.find_unknown(id), *self._find_contested(id)],
            },
            ids_of_versions(series.changes),
        )
        made = Described(self._site)
        room = self._results.room(tokens) * CHARACTERS_OF_TOKEN
        made.text = cut(write_series(made, document), room)
        return SeriesResult(**dict(self._results.finish(made)), **document)

    def compare_versions(
        self,
        message_id: Id,
        other_id: Annotated[
            str, Field(max_length=2_000, description="Message-ID of the newer version")
        ] = "",
        old_version: Annotated[
            int | None, Field(ge=1, le=100_000, description="or: number of the older, 2 for v2")
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
        shown = [old_id, new_id, *(one.message_id for one in (*old, *new))]
        whole: str = self._documents.publication.publish(format_comparison(compared), shown)
        lines = whole.split("\n")[:-1]
        document = self._publish(
            {
                "old_id": old_id,
                "new_id": new_id,
                "compared": [
                    {
                        **describe_compared(one),
                        "old": one.old.name if one.old else None,
                        "new": one.new.name if one.new else None,
                        "files": [describe_file(x) for x in one.files if x.state != "same"],
                    }
                    for one in compared
                ],
                "left_out": max(0, len(compared) - MAX_ENTRIES),
                "unknown": [*_find_gaps(compared), *dict.fromkeys(contested)],
            },
            shown,
        )
        made = Described(self._site)
        room = self._results.room(tokens) * CHARACTERS_OF_TOKEN
        write_comparison(made, document, lines, first, room)
        return ComparisonResult(**dict(self._results.finish(made)), **document)

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
        return normal, self._documents.service.read(
            read_versions, self._documents.service.store, normal
        )

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
        self._documents.publication.tell_people_apart(document)
        published: Document = shorten(self._documents.publication.publish(document, ids))
        return published

    def _explain(self, asked: str, decision: Decision) -> Document:
        commit = decision.commit
        said = describe_said(decision, self._documents.publication)
        summary = None
        if decision.thread_id and not said:
            summary = self._documents.read_summary(decision.thread_id)
        more = max(0, len(decision.naming) - MAX_ENTRIES)
        document = self._publish(
            {
                **describe_commit(decision),
                "asked": asked,
                "author": describe_person(commit.author_name, commit.author_email),
                "committer": describe_person(commit.committer_name, commit.committer_email),
                "credits": [describe_credit(one) for one in commit.credits],
                "followed": decision.followed or None,
                "mails": [*_describe_mails(decision)],
                "changes": [_describe_change(one) for one in decision.versions],
                "thread_id": decision.thread_id or None,
                "stated": describe_stated(decision, self._documents.publication),
                "thanks": [
                    {**describe_thanks(one), "said": one.said, "message_ids": [*one.patches]}
                    for one in decision.thanks
                ],
                "named_in": [describe_mail(one) for one in decision.naming],
                "released_in": [describe_release(one) for one in decision.releases],
                "left_out": {
                    "thanks": decision.left_out["thanks"],
                    "named_in": decision.left_out["named_in"] + more,
                },
            },
            find_ids(decision),
        )
        sentences = summary["sentences"] if summary else said
        document["summary"] = sentences[:MAX_ENTRIES]
        return document


def _describe_mails(decision: Decision) -> Iterator[Document]:
    """Yield the certain mails of a commit; none if no mail is certain."""
    wanted = {*decision.message_ids}
    for link in decision.links:
        mail = decision.mails.get(link.message_id)
        if mail and link.message_id in wanted:
            kind, evidence = link.kind.value, [*link.evidence]
            yield {**describe_mail(mail), "kind": kind, "evidence": evidence}


def _describe_change(change: Change) -> Document:
    deciding, ids = change.deciding, {one.message_id for one in change.versions}
    versions = [
        {**describe_version(one, ids), "from_email": one.from_email} for one in change.versions
    ]
    return {
        **describe_change(change, deciding.said),
        "reason_id": deciding.reason_id,
        "has_standing": deciding.has_standing,
        "versions": versions[-MAX_ENTRIES:],
        "left_out": max(0, len(versions) - MAX_ENTRIES),
    }


def _find_gaps(compared: Sequence[PatchComparison]) -> Iterator[str]:
    if any(file.is_cut for one in compared for file in one.files):
        yield "which lines differ in files that are too long: they are shown as replaced"
    if any(one.state in {"added", "dropped"} for one in compared):
        yield "whether a patch without a partner was split, merged or dropped"
    yield "whether the commit messages differ: diffs and titles are compared"

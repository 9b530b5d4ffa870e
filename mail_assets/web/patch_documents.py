"""Make the documents of commits, of series of patches, and of the patches of a list.

A commit may be seen if its list may: that is the first list that discusses its repository. What a
page says of a commit is what `mail-assets why` says (reading/decisions.py).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mail_assets.mail.message.ids import normalize_id
from mail_assets.mail.patches.interdiff import FileComparison, PatchComparison
from mail_assets.mail.patches.links import Kind, Link
from mail_assets.reading.decisions import Decision, Mail
from mail_assets.reading.patch_pages import (
    MOST_COMMITS,
    Before,
    CommitPage,
    Details,
    compare_postings,
    find_commits,
    read_applied,
    read_commit_page,
    read_details,
    read_open_patches,
    was_commit_shown,
)
from mail_assets.reading.patch_states import first_id, say_change, say_state
from mail_assets.reading.patches import NoPatchError
from mail_assets.reading.series import Change, SeriesPatchView, SeriesView, read_series
from mail_assets.search.language.request import MAX_QUERY, After, check_text
from mail_assets.store.objects import ObjectStore
from mail_assets.store.open import open_store
from mail_assets.tables.commits import CommitKey
from mail_assets.tables.messages import utc
from mail_assets.web.browse import Archives
from mail_assets.web.document_types import Document
from mail_assets.web.documents import Documents
from mail_assets.web.patch_types import (
    AppliedCommit,
    AppliedDocument,
    ChangeDocument,
    CommitDocument,
    CommitLink,
    ComparedFile,
    ComparedPatch,
    ComparisonDocument,
    MailDocument,
    OpenPatchesDocument,
    PersonDocument,
    PostingDocument,
    ReasonDocument,
    SeriesDocument,
    VersionDocument,
)
from mail_assets.web.requests import (
    Compared,
    commit_url,
    format_url,
    list_url,
    page_url,
    patches_url,
    read_cursor,
    series_url,
    write_cursor,
)
from mail_assets.web.responses import ServingError

#: Files of a commit that its document has.
MAX_FILES = 500
#: Rows of a page of patches, and entries of the feed.
ROWS = 50
#: Lines of a comparison, and those of one file.
MAX_LINES, MAX_FILE_LINES = 4_000, 1_000
#: The time of a feed without entries.
NEVER = "1970-01-01T00:00:00Z"

#: Kinds of links, as people read them.
_KINDS = {
    "applied": "applied from this mail",
    "version": "another version of the patch",
    "discussion": "discussed in this mail",
    "report": "reported in this mail",
    "missing": "named by the commit, and not in this archive",
}
#: Evidence of links and of steps between versions, as people read it.
_EVIDENCE = {
    "trailer": "the commit names it",
    "thread of the trailer": "it is in the thread that the commit names",
    "named in the text": "the commit names it in its text",
    "patch-id": "the same diff (patch-id)",
    "date": "the same date of its author",
    "subject": "the same subject",
    "author": "the same author",
    "files": "files in common",
    "change-id": "the same change-id",
    "link": "its author links the version before",
    "reply": "it answers the version before",
    "title": "the same title",
    "lines": "changed lines in common",
}


def say_evidence(evidence: Iterable[str]) -> str:
    """Return evidence in plain words."""
    return ", ".join(_say_fact(one) for one in evidence)


def _say_fact(fact: str) -> str:
    if fact.startswith("trailer "):
        return f"the commit names it in its trailer {fact.removeprefix('trailer ')}"
    if fact.endswith("% of the lines"):
        return f"{fact.removesuffix(' of the lines')} of the changed lines in common"
    return _EVIDENCE.get(fact, fact)


@dataclass(frozen=True)
class PatchDocuments:
    """Makes the documents of commits, series and patches from what a service reads."""

    documents: Documents

    def find_commit_address(self, digits: str) -> str | None:
        """Return the address of the commit that some digits name, None if they are its id."""
        found = self.documents.service.read(find_commits, digits)
        return commit_url(found[0].sha) if len(found) == 1 and found[0].sha != digits else None

    def find_commit_data_address(self, digits: str) -> str | None:
        """Return the address of the commit's JSON that some digits name, as above."""
        address = self.find_commit_address(digits)
        return format_url(address, "json") if address else None

    def commit(self, digits: str) -> CommitDocument:
        """Return a commit and the mail that decided it.

        Raises:
            ServingError: no commit has the id, several begin so, or its list is closed.
        """
        found = self.documents.service.read(read_commit_page, self._find_commit(digits))
        if found is None:
            raise ServingError(404, "not_found", f"no repository here has the commit {digits}")
        document = self._describe_commit(found)
        return self.documents.publication.publish(
            document, [*document["message_ids"], *_named_ids(document)]
        )

    def _find_commit(self, digits: str) -> CommitKey:
        read = self.documents.service.read
        found = read(find_commits, digits)
        if len(found) == 1:
            return found[0]
        if found:
            more = " and more" if len(found) > MOST_COMMITS else ""
            shas = [one.sha for one in found[:MOST_COMMITS]]
            message = f"{digits} begins {len(shas)} commits{more}; write more digits"
            raise ServingError(404, "ambiguous", message, allowed=shas)
        if read(was_commit_shown, digits):
            raise ServingError(410, "closed", "this commit is no longer published here")
        raise ServingError(404, "not_found", f"no repository here has the commit {digits}")

    def _describe_commit(self, page: CommitPage) -> CommitDocument:
        row, decision = page
        card = decision.commit
        applied = [x.message_id for x in decision.links if x.kind == Kind.applied]
        states = self.documents.read_patch_states(applied[:1])
        size = decision.thread
        return {
            "sha": card.sha,
            "repository": card.repository,
            "subject": card.subject,
            "body": row.body,
            "author": {"from_name": card.author_name, "from_email": card.author_email},
            "committer": {"from_name": card.committer_name, "from_email": card.committer_email},
            "authored_at": utc(card.authored_at),
            "committed_at": utc(card.committed_at),
            "parents": [*row.parents],
            "credits": [{"role": one.role, **_read_person(one.person)} for one in card.credits],
            "picked_from": [*card.picked_from],
            "reverts": [*card.reverts],
            "is_merge": card.is_merge,
            "files": [
                {
                    "path": one["path"],
                    "old_path": one["old_path"],
                    "change": one["change"],
                    "added": one["added"],
                    "removed": one["removed"],
                    "is_binary": one["is_binary"],
                }
                for one in row.files[:MAX_FILES]
            ],
            "file_count": len(row.files),
            "added": row.added,
            "removed": row.removed,
            "abstained": decision.abstained,
            "reason": decision.reason,
            "message_ids": decision.message_ids,
            "links": [_describe_link(one, decision) for one in decision.links],
            "thread_url": page_url("thread", decision.thread_id) if decision.thread_id else None,
            "messages": size.messages if size else 0,
            "people": size.people if size else 0,
            "summary": self.documents.read_summary(decision.thread_id)
            if decision.thread_id
            else None,
            "patch": states[0] if states else None,
            "named_in": [_describe_mail(one) for one in decision.naming],
            "url": commit_url(card.sha),
        }

    def series(self, id: str, compared: Compared | None = None) -> SeriesDocument:
        """Return the series of a mail, and the difference of two of its postings if asked for.

        Raises:
            ServingError: no message has the id, it is no patch, or it has no such posting.
        """
        check_text("id", id, MAX_QUERY)
        message_id = normalize_id(id)
        read = self.documents.service.read
        series = read(read_series, message_id)
        if series is None:
            self.documents.read_copies(id)  # it says why there is no such message
            raise ServingError(404, "not_found", f"{id} is no patch: no series is known of it")
        document: SeriesDocument = {
            "series_id": first_id(series),
            "message_id": message_id,
            "title": series.title,
            **self._describe_versions(series, read(read_details, message_id)),  # type: ignore[typeddict-item]
            "comparison": self._compare(series, compared) if compared else None,
            "url": series_url(first_id(series), compared),
        }
        published = self.documents.publication.publish(document)
        for patch in published["comparison"]["changes"] if published["comparison"] else ():
            for file in patch["files"]:
                file["lines"] = "".join(file["lines"]).split("\n") if file["lines"] else []
        return published

    def _describe_versions(
        self, series: SeriesView, details: Mapping[tuple[str, int], Details]
    ) -> dict[str, Any]:
        ids = {one.message_id for some in series.postings for one in some}
        return {
            "postings": [
                _describe_posting(number, some, details)
                for number, some in enumerate(series.postings)
            ],
            "changes": [
                self._describe_change(change, _numbers(series), details, ids)
                for change in sorted(series.changes, key=_order)
            ],
        }

    def _describe_change(
        self,
        change: Change,
        numbers: Mapping[int, int],
        details: Mapping[tuple[str, int], Details],
        ids: set[str],
    ) -> ChangeDocument:
        deciding = change.deciding
        about = details.get((deciding.message_id, deciding.place))
        return {
            "number": change.number,
            "kind": deciding.kind,
            "title": change.versions[-1].title,
            "state": deciding.state,
            "words": say_change(change),
            "reason": self._describe_reason(deciding, about),
            "commits": [*dict.fromkeys(sha for x in change.versions for sha in x.commits)],
            "shas": change.shas,
            "versions": [
                _describe_version(
                    one, numbers[one.posting], details.get((one.message_id, one.place)), ids
                )
                for one in change.versions
            ],
        }

    def _describe_reason(
        self, one: SeriesPatchView, about: Details | None
    ) -> ReasonDocument | None:
        if not one.said or not one.reason_id or not one.said_at:
            return None
        text = one.said
        if about and about.around is not None and about.start is not None and about.end is not None:
            text = self.documents.publication.publish_part(about.around, about.start, about.end)
        return {
            "message_id": one.reason_id,
            "text": " ".join(text.split()),
            "from_name": one.said_by or "",
            "sent_at": utc(one.said_at),
            "url": page_url("message", one.reason_id),
        }

    def _compare(self, series: SeriesView, compared: Compared) -> ComparisonDocument:
        old, new = compared
        if max(compared) >= len(series.postings) or old == new:
            message = f"there are {len(series.postings)} versions, from 0 on; choose two of them"
            raise ServingError(404, "not_found", message)
        problem = ""
        found: Sequence[PatchComparison] = ()
        try:
            found = self.documents.service.read(compare_postings, self._store, series, old, new)
        except NoPatchError as error:
            problem = str(error)
        return {"old": old, "new": new, "problem": problem, "changes": _describe_patches(found)}

    @cached_property
    def _store(self) -> ObjectStore:
        return open_store(self.documents.service.options.store)

    def open(self, name: str, cursor: str = "") -> OpenPatchesDocument:
        """Return a page of the open patches of a list.

        Raises:
            ServingError: no list has the name, or the cursor is wrong.
        """
        self._require_list(name)
        found = self.documents.service.read(read_open_patches, name, _read_place(cursor), ROWS)
        url = patches_url(name, "open")
        document: OpenPatchesDocument = {
            "list": name,
            "changes": [
                {
                    "message_id": newest.message_id,
                    "title": newest.title,
                    "label": newest.label,
                    "state": newest.state,
                    "words": say_state(newest),
                    "from_name": newest.from_name,
                    "from_email": newest.from_email,
                    "sent_at": utc(newest.sent_at),
                    "series_title": series.title,
                    "series_url": series_url(first_id(series)),
                    "url": page_url("message", newest.message_id),
                }
                for series, change in found.changes
                for newest in [change.deciding]
            ],
            "list_url": list_url(name),
            "url": _with_cursor(url, cursor),
            "next": _write_next(url, found.following),
        }
        return self.documents.publication.publish(document)

    def applied(self, name: str, cursor: str = "") -> AppliedDocument:
        """Return a page of the newest commits of a list that have a certain mail.

        Raises:
            ServingError: no list has the name, or the cursor is wrong.
        """
        self._require_list(name)
        found = self.documents.service.read(read_applied, name, _read_place(cursor), ROWS)
        url = patches_url(name, "applied")
        document: AppliedDocument = {
            "list": name,
            "commits": [_describe_applied(one) for one in found.decisions],
            "list_url": list_url(name),
            "atom_url": format_url(url, "atom"),
            "url": _with_cursor(url, cursor),
            "next": _write_next(url, found.following),
        }
        return self.documents.publication.publish(document)

    def feed(self, name: str, cursor: str = "") -> Document:
        """Return the feed of what was applied; raises as `applied`."""
        document = self.applied(name, cursor)
        following = document["next"]
        return {
            **document,
            "title": f"{name}: applied patches",
            "page": patches_url(name, "applied"),
            "self": format_url(document["url"], "atom"),
            "next": format_url(following, "atom") if following else None,
            "updated": max((one["committed_at"] for one in document["commits"]), default=NEVER),
        }

    def _require_list(self, name: str) -> None:
        Archives(self.documents.service, self.documents.publication).count_months(name)


def _named_ids(document: CommitDocument) -> Iterable[str]:
    return (one["message_id"] for one in document["links"])


def _read_person(text: str) -> PersonDocument:
    """Return the name and the address of a trailer such as "Bo Pier <bo@example.org>"."""
    name, bracket, rest = text.partition("<")
    if not bracket:
        return {"from_name": text.strip(), "from_email": ""}
    return {"from_name": name.strip(' "'), "from_email": rest.partition(">")[0].strip()}


def _describe_mail(mail: Mail) -> MailDocument:
    return {
        "message_id": mail.message_id,
        "subject": mail.subject,
        "from_name": mail.from_name,
        "from_email": mail.from_email,
        "sent_at": utc(mail.sent_at),
        "lists": [*mail.lists],
        "url": page_url("message", mail.message_id),
    }


def _describe_link(link: Link, decision: Decision) -> CommitLink:
    mail = decision.mails.get(link.message_id)
    return {
        "message_id": link.message_id,
        "kind": link.kind.value,
        "evidence": [*link.evidence],
        "words": f"{_KINDS.get(link.kind.value, link.kind.value)}: {say_evidence(link.evidence)}",
        "mail": _describe_mail(mail) if mail else None,
    }


def _describe_applied(decision: Decision) -> AppliedCommit:
    card = decision.commit
    first = next(one for one in decision.links if one.message_id in decision.mails)
    return {
        "sha": card.sha,
        "repository": card.repository,
        "subject": card.subject,
        "author": {"from_name": card.author_name, "from_email": card.author_email},
        "committed_at": utc(card.committed_at),
        "words": f"{_KINDS[first.kind.value]}: {say_evidence(first.evidence)}",
        "mail": _describe_mail(decision.mails[first.message_id]),
        "url": commit_url(card.sha),
    }


def _order(change: Change) -> tuple[bool, int, int]:
    """Order of the rows of a series: the cover letter, then by the newest numbers of the parts."""
    newest = change.versions[-1]
    return newest.kind != "cover", newest.part or 0, change.number


def _numbers(series: SeriesView) -> dict[int, int]:
    """Return the places of postings among those that may be shown."""
    return {some[0].posting: number for number, some in enumerate(series.postings)}


def _describe_posting(
    number: int,
    some: Sequence[SeriesPatchView],
    details: Mapping[tuple[str, int], Details],
) -> PostingDocument:
    first = some[0]
    # the changelog of a posting is that of its cover letter; those of patches stand with them
    about = details.get((first.message_id, first.place)) if first.kind == "cover" else None
    return {
        "number": number,
        "version": first.version,
        "message_id": first.message_id,
        "list": first.list,
        "sent_at": utc(first.sent_at),
        "from_name": first.from_name,
        "from_email": first.from_email,
        "patches": sum(one.kind == "patch" for one in some),
        "changelog": [*about.changelog] if about else [],
        "url": page_url("message", first.message_id),
    }


def _describe_version(
    one: SeriesPatchView, number: int, about: Details | None, ids: set[str]
) -> VersionDocument:
    return {
        "posting": number,
        "message_id": one.message_id,
        "label": one.label,
        "version": one.version,
        "title": one.title,
        "sent_at": utc(one.sent_at),
        "from_name": one.from_name,
        "from_email": one.from_email,
        "is_taken_over": one.is_taken_over,
        "previous_id": one.previous_id if one.previous_id in ids else None,
        "evidence": [*one.evidence],
        "evidence_words": say_evidence(one.evidence),
        "state": one.state,
        "words": say_state(one),
        "changelog": [*about.changelog] if about else [],
        "added": about.added if about else 0,
        "removed": about.removed if about else 0,
        "url": page_url("message", one.message_id),
    }


def _describe_patches(found: Sequence[PatchComparison]) -> list[ComparedPatch]:
    left = MAX_LINES
    described: list[ComparedPatch] = []
    for one in found:
        files: list[ComparedFile] = []
        for file in one.files:
            if file.state == "same":
                continue
            shown = min(left, MAX_FILE_LINES, len(file.lines))
            files.append(_describe_file(file, shown))
            left -= shown
        described.append(
            {
                "title": one.title,
                "old_title": one.old.title if one.old and one.old.title != one.title else "",
                "state": one.state,
                "old_id": one.old.message_id if one.old else None,
                "new_id": one.new.message_id if one.new else None,
                "changelog": [*one.changelog],
                "files": files,
            }
        )
    return described


def _describe_file(file: FileComparison, shown: int) -> ComparedFile:
    # one text until addresses are hidden: encoded text is found over several lines
    text = "\n".join(file.lines[:shown])
    return {
        "path": file.path,
        "old_path": file.old_path,
        "state": file.state,
        "lines": [text] if text else [],
        "left_out": len(file.lines) - shown,
        "is_cut": file.is_cut,
    }


def _read_place(cursor: str) -> Before:
    if not cursor:
        return Before()
    after = read_cursor(cursor)
    return Before(after.sent_at, after.message_id) if after.sent_at else Before()


def _with_cursor(url: str, cursor: str) -> str:
    return f"{url}?cursor={cursor}" if cursor else url


def _write_next(url: str, following: Before | None) -> str | None:
    if following is None:
        return None
    return _with_cursor(url, write_cursor(After(0, following.id, following.at)))

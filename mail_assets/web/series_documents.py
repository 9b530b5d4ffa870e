"""Documents of series of patches, of their comparisons, and of open patches."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mail_assets.mail.message.ids import normalize_id
from mail_assets.mail.patches.interdiff import FileComparison, PatchComparison
from mail_assets.month import utc
from mail_assets.reading.patch_pages import (
    Details,
    compare_postings,
    read_details,
    read_open_patches,
)
from mail_assets.reading.patch_states import say_change, say_state
from mail_assets.reading.patches import NoPatchError
from mail_assets.reading.series import Change, SeriesPatchView, SeriesView, read_series
from mail_assets.search.language.request import MAX_QUERY, check_text
from mail_assets.web.commit_documents import (
    ROWS,
    ids_of_versions,
    read_place,
    require_list,
    say_evidence,
    write_next,
)
from mail_assets.web.documents import Documents
from mail_assets.web.patch_types import (
    ChangeDocument,
    ChangeFields,
    ComparedFile,
    ComparedFileFields,
    ComparedPatch,
    ComparedPatchFields,
    ComparisonDocument,
    OpenPatchesDocument,
    PostingDocument,
    PostingFields,
    ReasonDocument,
    SeriesDocument,
    VersionDocument,
    VersionFields,
)
from mail_assets.web.requests import (
    Compared,
    add_cursor,
    list_url,
    page_url,
    patches_url,
    series_url,
)
from mail_assets.web.responses import ServingError

#: Most lines of a comparison, and of one file in it.
MAX_LINES, MAX_FILE_LINES = 4_000, 1_000


@dataclass(frozen=True)
class SeriesDocuments:
    """Makes the documents of series from what a service reads."""

    documents: Documents

    def series(self, id: str, compared: Compared | None = None) -> SeriesDocument:
        """Return the series of a mail, and the difference of two of its postings if asked for."""
        check_text("id", id, MAX_QUERY)
        message_id = normalize_id(id)
        read = self.documents.service.read
        series = read(read_series, message_id)
        if series is None:
            self.documents.read_copies(id)  # raises an error if there is no such message
            raise ServingError(404, "not_found", f"{id} is no patch: no series is known of it")
        details = read(read_details, message_id)
        # numbers of postings among the published ones
        numbers = {some[0].posting: number for number, some in enumerate(series.postings)}
        ids = {one.message_id for some in series.postings for one in some}
        document: SeriesDocument = {
            "series_id": series.series_id,
            "message_id": message_id,
            "title": series.title,
            "postings": [
                _describe_posting(number, some, details)
                for number, some in enumerate(series.postings)
            ],
            "changes": [
                self._describe_change(change, numbers, details, ids)
                for change in sorted(series.changes, key=_order)
            ],
            "comparison": self._compare(series, compared) if compared else None,
            "url": series_url(series.series_id, compared),
        }
        named = ids_of_versions(series.changes)
        self.documents.publication.tell_people_apart(document)
        published = self.documents.publication.publish(document, named)
        for patch in published["comparison"]["changes"] if published["comparison"] else ():
            for file in patch["files"]:
                file["lines"] = "".join(file["lines"]).split("\n") if file["lines"] else []
        return published

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
            **describe_change(change, self._read_said(deciding, about)),
            "versions": [
                _describe_version(
                    one, numbers[one.posting], details.get((one.message_id, one.place)), ids
                )
                for one in change.versions
            ],
        }

    def _read_said(self, one: SeriesPatchView, about: Details | None) -> str | None:
        """Return the sentence that states the state; addresses are hidden as in the whole text."""
        if about and about.around is not None and about.start is not None and about.end is not None:
            return self.documents.publication.publish_part(about.around, about.start, about.end)
        return one.said

    def _compare(self, series: SeriesView, compared: Compared) -> ComparisonDocument:
        old, new = compared
        if max(compared) >= len(series.postings) or old == new:
            last = len(series.postings) - 1
            message = (
                f"choose two versions of this series: `old` and `new` count from 0, here to {last}"
                if last
                else "this series has one version, so there is nothing to compare"
            )
            raise ServingError(404, "not_found", message)
        problem = ""
        found: Sequence[PatchComparison] = ()
        try:
            found = self.documents.service.read(
                compare_postings, self.documents.service.store, series, old, new
            )
        except NoPatchError as error:
            problem = str(error)
        return {"old": old, "new": new, "problem": problem, "changes": _describe_patches(found)}

    def open(self, name: str, cursor: str = "") -> OpenPatchesDocument:
        """Return a page of the open patches of a list."""
        require_list(self.documents, name)
        read, place = self.documents.service.read, read_place(cursor)
        changes, following = read(read_open_patches, name, place, ROWS)
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
                    "namesake": "",
                    "sent_at": utc(newest.sent_at),
                    "series_title": series.title,
                    "series_url": series_url(series.series_id),
                    "url": page_url("message", newest.message_id),
                }
                for series, change in changes
                for newest in [change.deciding]
            ],
            "list_url": list_url(name),
            "url": add_cursor(url, cursor),
            "next": write_next(url, following),
        }
        self.documents.publication.tell_people_apart(document)
        return self.documents.publication.publish(document)


def _order(change: Change) -> tuple[bool, int, int]:
    """Order the rows of a series: the cover letter, then parts by their newest numbers."""
    newest = change.newest
    return newest.kind != "cover", newest.part or 0, change.number


def _describe_posting(
    number: int,
    some: Sequence[SeriesPatchView],
    details: Mapping[tuple[str, int], Details],
) -> PostingDocument:
    first = some[0]
    # the changelog of a posting is that of its cover letter; patches have their own changelogs
    about = details.get((first.message_id, first.place)) if first.kind == "cover" else None
    return {
        **describe_posting(number, some),
        "from_email": first.from_email,
        "changelog": [*about.changelog] if about else [],
    }


def _describe_version(
    one: SeriesPatchView, number: int, about: Details | None, ids: Collection[str]
) -> VersionDocument:
    return {
        **describe_version(one, ids),
        "posting": number,
        "from_email": one.from_email,
        "evidence_words": say_evidence(one.evidence),
        "changelog": [*about.changelog] if about else [],
        "added": about.added if about else 0,
        "removed": about.removed if about else 0,
    }


def describe_posting(number: int, some: Sequence[SeriesPatchView]) -> PostingFields:
    """Return a posting; `number` is its place among the published ones."""
    first = some[0]
    return {
        "number": number,
        "version": first.version,
        "message_id": first.message_id,
        "list": first.list,
        "sent_at": utc(first.sent_at),
        "from_name": first.from_name,
        "namesake": "",
        "patches": sum(one.kind == "patch" for one in some),
        "url": page_url("message", first.message_id),
    }


def describe_change(change: Change, said: str | None) -> ChangeFields:
    """Return a change; `said` is the published sentence that states its state."""
    deciding = change.deciding
    reason: ReasonDocument | None = None
    if said and deciding.said and deciding.reason_id and deciding.said_at:
        reason = {
            "message_id": deciding.reason_id,
            "text": " ".join(said.split()),
            "from_name": deciding.said_by or "",
            "from_email": deciding.said_from or "",
            "namesake": "",
            "sent_at": utc(deciding.said_at),
            "url": page_url("message", deciding.reason_id),
        }
    return {
        "number": change.number,
        "kind": deciding.kind,
        "title": change.newest.title,
        "state": deciding.state,
        "words": say_change(change),
        "reason": reason,
        "commits": [*dict.fromkeys(sha for x in change.versions for sha in x.commits)],
        "shas": change.shas,
    }


def describe_version(one: SeriesPatchView, ids: Collection[str]) -> VersionFields:
    """Return a version of a change; the version before it is named only if it is in `ids`."""
    return {
        "message_id": one.message_id,
        "label": one.label,
        "version": one.version,
        "title": one.title,
        "sent_at": utc(one.sent_at),
        "from_name": one.from_name,
        "namesake": "",
        "is_taken_over": one.is_taken_over,
        "contested": one.is_contested,
        "previous_id": one.previous_id if one.previous_id in ids else None,
        "evidence": [*one.evidence],
        "state": one.state,
        "words": say_state(one),
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
            # one text, so that encoded text over several lines is found when addresses are hidden
            text = "\n".join(file.lines[:shown])
            left_out = len(file.lines) - shown
            lines = [text] if text else []
            files.append({**describe_file(file), "lines": lines, "left_out": left_out})
            left -= shown
        described.append({**describe_compared(one), "files": files})
    return described


def describe_compared(one: PatchComparison) -> ComparedPatchFields:
    """Return a patch in two versions, without its files."""
    return {
        "title": one.title,
        "old_title": one.old.title if one.old and one.old.title != one.title else "",
        "state": one.state,
        "old_id": one.old.message_id if one.old else None,
        "new_id": one.new.message_id if one.new else None,
        "changelog": [*one.changelog],
    }


def describe_file(file: FileComparison) -> ComparedFileFields:
    """Return a file in two versions of a patch, without its lines."""
    return {
        "path": file.path,
        "old_path": file.old_path,
        "state": file.state,
        "is_cut": file.is_cut,
    }

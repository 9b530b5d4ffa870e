"""Documents of commits, and of applied patches.

A commit is published if its list is: the first list that discusses its repository. Pages say the
same about a commit as `mail-assets why` (reading/decisions.py).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from mail_assets.mail.patches.links import CONTESTED, Link
from mail_assets.month import utc
from mail_assets.reading.decisions import NOT_HERE, Credit, Decision, Mail, Release, Thanks
from mail_assets.reading.patch_pages import (
    MOST_COMMITS,
    Before,
    find_commits,
    read_applied,
    read_commit_page,
    was_commit_shown,
)
from mail_assets.reading.series import Change
from mail_assets.search.language.request import After
from mail_assets.tables.commits import CommitKey, StoredCommit
from mail_assets.tables.thread_summaries import describe_statement
from mail_assets.web.browse import Archives
from mail_assets.web.document_types import Document
from mail_assets.web.documents import Documents, describe_summary, read_patch_states
from mail_assets.web.patch_types import (
    AppliedCommit,
    AppliedDocument,
    ChangedFile,
    CommitDocument,
    CommitFields,
    CommitLink,
    CreditDocument,
    MailDocument,
    PersonDocument,
    ReleaseDocument,
    SaidDocument,
    StatedDocument,
    ThanksDocument,
)
from mail_assets.web.privacy import Publication
from mail_assets.web.requests import (
    NEVER,
    add_cursor,
    commit_url,
    format_url,
    list_url,
    page_url,
    patches_url,
    read_cursor,
    write_cursor,
)
from mail_assets.web.responses import ServingError

#: Most files of a commit that its document lists.
MAX_FILES = 500
#: Rows of a page of patches, and entries of the feed.
ROWS = 50
#: Kinds of links, in words.
_KINDS = {
    "applied": "applied from this mail",
    "version": "another version of the patch",
    "discussion": "discussed in this mail",
    "report": "reported in this mail",
    "missing": f"named by the commit, and {NOT_HERE}",
}
#: Evidence of links, and of the order of versions, in words.
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
    CONTESTED: "contested: several texts claim its Message-ID, and the first to arrive is meant",
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
class CommitDocuments:
    """Makes the documents of commits from what a service reads."""

    documents: Documents

    def find_commit_address(self, digits: str) -> str | None:
        """Return the address of the commit with an abbreviated id; None if the id is complete."""
        found = self.documents.service.read(find_commits, digits)
        return commit_url(found[0].sha) if len(found) == 1 and found[0].sha != digits else None

    def find_commit_data_address(self, digits: str) -> str | None:
        """Return the address of the commit's JSON, as `find_commit_address`."""
        address = self.find_commit_address(digits)
        return format_url(address, "json") if address else None

    def commit(self, digits: str) -> CommitDocument:
        """Return a commit and the mail that decided it."""
        found = self.documents.service.read(read_commit_page, self._find_commit(digits))
        if found is None:
            raise ServingError(404, "not_found", f"no repository here has the commit {digits}")
        document = self._describe_commit(*found)
        self.documents.publication.tell_people_apart(document)
        return self.documents.publication.publish(document, find_ids(found[1]))

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

    def _describe_commit(self, row: StoredCommit, decision: Decision) -> CommitDocument:
        card = decision.commit
        states = read_patch_states(self.documents.service, decision.applied_ids[:1])
        size = decision.thread
        return {
            **describe_commit(decision),
            "body": row.body,
            "author": describe_person(card.author_name, card.author_email),
            "committer": describe_person(card.committer_name, card.committer_email),
            "parents": [*row.parents],
            "credits": [describe_credit(one) for one in card.credits],
            "picked_from": [*card.picked_from],
            "reverts": [*card.reverts],
            "is_merge": card.is_merge,
            "files": [
                cast(ChangedFile, {name: one[name] for name in ChangedFile.__annotations__})
                for one in row.files[:MAX_FILES]
            ],
            "file_count": len(row.files),
            "added": row.added,
            "removed": row.removed,
            "links": [_describe_link(one, decision) for one in decision.links],
            "thread_url": page_url("thread", decision.thread_id) if decision.thread_id else None,
            "messages": size.messages if size else 0,
            "people": size.people if size else 0,
            "summary": describe_summary(decision.summary, self.documents.publication)
            if decision.summary
            else None,
            "stated": describe_stated(decision, self.documents.publication),
            "said": describe_said(decision, self.documents.publication),
            "patch": states[0] if states else None,
            "thanks": [describe_thanks(one) for one in decision.thanks],
            "named_in": [describe_mail(one) for one in decision.naming],
            "released_in": [describe_release(one) for one in decision.releases],
        }

    def applied(self, name: str, cursor: str = "") -> AppliedDocument:
        """Return a page of a list's newest commits with mail that certainly belongs to them."""
        require_list(self.documents, name)
        read, place = self.documents.service.read, read_place(cursor)
        decisions, following = read(read_applied, name, place, ROWS)
        url = patches_url(name, "applied")
        document: AppliedDocument = {
            "list": name,
            "commits": [_describe_applied(one) for one in decisions],
            "list_url": list_url(name),
            "atom_url": format_url(url, "atom"),
            "url": add_cursor(url, cursor),
            "next": write_next(url, following),
        }
        self.documents.publication.tell_people_apart(document)
        return self.documents.publication.publish(document)

    def feed(self, name: str, cursor: str = "") -> Document:
        """Return the feed of applied patches; raises the errors of `applied`."""
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


def describe_commit(decision: Decision) -> CommitFields:
    """Return the fields of a commit that pages and tools have in common."""
    card = decision.commit
    return {
        "sha": card.sha,
        "repository": card.repository,
        "subject": card.subject,
        "authored_at": utc(card.authored_at),
        "committed_at": utc(card.committed_at),
        "abstained": decision.abstained,
        "reason": decision.reason,
        "message_ids": decision.message_ids,
        "left_out": {**decision.left_out},
        "unknown": decision.find_unknown(),
        "url": commit_url(card.sha),
    }


def find_ids(decision: Decision) -> set[str]:
    """Return the Message-IDs that a commit and its mail name; they stay readable in texts."""
    mails = [one.mail for one in decision.thanks] + [one.mail for one in decision.releases]
    return {
        *decision.message_ids,
        *decision.mails,
        *(one.message_id for one in decision.links),  # also mail that is not archived
        *(one.message_id for one in (*mails, *decision.naming)),
        *ids_of_versions(decision.versions),
    }


def ids_of_versions(changes: Iterable[Change]) -> set[str]:
    """Return the Message-IDs that changes name; they stay readable in texts."""
    versions = (one for change in changes for one in change.versions)
    return {x for one in versions for x in (one.message_id, one.reason_id, one.previous_id) if x}


def describe_person(name: str, address: str) -> PersonDocument:
    """Return a person; `namesake` is set when the document is complete."""
    return {"from_name": name, "from_email": address, "namesake": ""}


def describe_credit(credit: Credit) -> CreditDocument:
    """Return a person of a trailer, such as "Bo Pier <bo@example.org>"."""
    name, bracket, rest = credit.person.partition("<")
    address = rest.partition(">")[0].strip()
    person = describe_person(name.strip(' "') if bracket else name.strip(), address)
    return {"role": credit.role, **person}


def describe_thanks(thanks: Thanks) -> ThanksDocument:
    """Return a message that reports that a commit, or its patch, was applied."""
    about = {"names_commit": thanks.by_id, "has_standing": thanks.has_standing}
    return cast(ThanksDocument, {**about, **describe_mail(thanks.mail)})


def describe_release(release: Release) -> ReleaseDocument:
    """Return the announcement of a release."""
    about = {"name": release.name, "has_standing": release.has_standing}
    return cast(ReleaseDocument, {**about, **describe_mail(release.mail)})


def describe_stated(decision: Decision, publication: Publication) -> list[StatedDocument]:
    """Return what the discussion decided about a commit; addresses are hidden as in messages."""
    stated: list[StatedDocument] = []
    for label, one in decision.find_stated():
        around = decision.summary.read_context(one.statement) if decision.summary else ("", "")
        text = publication.publish_sentence(one.statement.text, around)
        url = page_url("message", one.statement.message_id)
        fields = {"label": label, **describe_statement(one, text), "url": url}
        fields["namesake"] = publication.mark(fields.pop("from_email"))
        stated.append(cast(StatedDocument, fields))
    return stated


def describe_said(decision: Decision, publication: Publication) -> list[SaidDocument]:
    """Return sentences about the patch; addresses are hidden as in their whole messages."""
    said: list[SaidDocument] = []
    for one in decision.talk.sentences if decision.talk else ():
        text = publication.publish_sentence(one.text, one.around)
        url = page_url("message", one.message_id)
        fields = {**one.as_json(), "text": text, "namesake": "", "url": url}
        said.append(cast(SaidDocument, fields))
    return said


def describe_mail(mail: Mail) -> MailDocument:
    """Return the fields of a message for one line."""
    return {
        "message_id": mail.message_id,
        "subject": mail.subject,
        "from_name": mail.from_name,
        "from_email": mail.from_email,
        "namesake": "",
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
        "mail": describe_mail(mail) if mail else None,
    }


def _describe_applied(decision: Decision) -> AppliedCommit:
    card = decision.commit
    first = next(one for one in decision.links if one.message_id in decision.mails)
    return {
        "sha": card.sha,
        "repository": card.repository,
        "subject": card.subject,
        "author": describe_person(card.author_name, card.author_email),
        "committed_at": utc(card.committed_at),
        "words": f"{_KINDS[first.kind.value]}: {say_evidence(first.evidence)}",
        "mail": describe_mail(decision.mails[first.message_id]),
        "url": commit_url(card.sha),
    }


def read_place(cursor: str) -> Before:
    """Return the place at which a page of patches begins."""
    if not cursor:
        return Before()
    after = read_cursor(cursor)
    return Before(after.sent_at, after.message_id) if after.sent_at else Before()


def write_next(url: str, following: Before | None) -> str | None:
    """Return the address of the page after a place, or None without a place."""
    if following is None:
        return None
    return add_cursor(url, write_cursor(After(0, following.id, following.at)))


def require_list(documents: Documents, name: str) -> None:
    """Raise an error if a list does not exist."""
    Archives(documents.service, documents.publication).count_months(name)

"""The author of a rewritten From, and the list that a message names."""

import pytest

from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import parse_message
from mail_assets_tests.cases import cases
from mail_assets_tests.mail.mails import raw_message

LIST = "List-Id: Dev list <dev.lists.example.org>\nTo: dev@lists.example.org"
GROUP = "Mailing-List: list dev@groups.example.org; contact dev-owner@groups.example.org"


def read(header: str, body: str = "") -> Message:
    head = header.encode() + b"\nMessage-ID: <1@x>\nDate: Mon, 5 Jan 2026 15:18:12 +0000\n"
    return parse_message(
        raw_message(head + body.encode() if body else head + b"\nx"), month="2026-01", dialect="pg"
    )


@cases("sender, others, name, email", {
    "plain": ("Jo Doe <jo@example.com>", LIST, "Jo Doe", "jo@example.com"),
    "a copy to oneself": ("Jo Doe <jo@example.com>",
                          "Reply-To: ann@example.com\nCc: Jo Doe <jo@example.com>", "Jo Doe",
                          "jo@example.com"),
    "a surname": ("Carlo Via Bassi <carlo@example.com>", LIST, "Carlo Via Bassi",
                  "carlo@example.com"),
    "a list writes to itself": (
        "Dev list <dev@lists.example.org>",
        LIST,
        "Dev list",
        "dev@lists.example.org",
    ),
    "a list writes without a name": ("dev@lists.example.org", LIST, "", "dev@lists.example.org"),
    "named via": ("via <v@example.com>", LIST, "via", "v@example.com"),
    "a bounce": ("bounce+jo=example.com@lists.example.org", LIST, "",
                 "bounce+jo=example.com@lists.example.org"),
    "=": ("jo=doe.org@example.com", LIST, "", "jo=doe.org@example.com"),
})  # fmt: skip
def test_ordinary_mail_has_its_sender_for_author(
    sender: str, others: str, name: str, email: str
) -> None:
    found = read(f"From: {sender}\n{others}")
    assert (found.from_name, found.from_email) == (name, email)
    assert not {"munged_from", "author_uncertain"} & set(found.flags)


@cases("sender, others", {
    "Mailman, answers to the author": (
        "Jo Doe via Dev <dev@lists.example.org>",
        f"{LIST}\nReply-To: Jo Doe <jo@example.com>",
    ),
    "Mailman, answers to both": (
        "Jo Doe via Dev <dev@lists.example.org>",
        f"{LIST}\nReply-To: The list <dev@lists.example.org>, jo@example.com",
    ),
    "Mailman, answers to the list": (
        "Jo Doe via Dev <dev@lists.example.org>",
        f"{LIST}\nReply-To: dev@lists.example.org\nCc: Ann <a@x.org>, Jo Doe <jo@example.com>",
    ),
    "Mailman, in Spanish": ("Jo Doe vía Dev <dev@lists.example.org>",
                            f"{LIST}\nCc: Jo Doe <jo@example.com>"),
    "Mailman, in Japanese": (
        '"Jo Doe (Dev 経由)" <dev@lists.example.org>',
        f"{LIST}\nCc: Jo Doe <jo@example.com>",
    ),
    "Google Groups": (
        "\"'Jo Doe' via Dev\" <dev@groups.example.org>",
        f"{GROUP}\nX-Original-Sender: jo@example.com\nReply-To: dev@groups.example.org",
    ),
    "Google Groups, original From": (
        "\"'Jo Doe' via Dev\" <dev@groups.example.org>",
        f"{GROUP}\nX-Original-From: Jo Doe <jo@example.com>\nReply-To: a@x.org, b@x.org",
    ),
    "groups.io": ("Jo Doe via groups.io <jo=example.com@groups.io>",
                  "List-Id: <dev.groups.io>\nReply-To: dev@groups.io"),
    "groups.io, without words": (
        "Jo Doe <jo=example.com@groups.io>",
        "List-Id: <main.dev.groups.io>",
    ),
    "the IETF": ("Jo Doe <jo=40example.com@dmarc.example.org>", LIST),
    "Sympa": ('"Jo Doe" (via dev Mailing List) <dev@lists.example.org>',
              f"{LIST}\nReply-To: Jo Doe <jo@example.com>"),
    "Sympa, name and email": ('"Jo Doe" (jo@example.com) <dev@lists.example.org>', LIST),
    "Sympa, name, email and list": (
        '"Jo Doe" (jo@example.com via dev Mailing List) <dev@lists.example.org>',
        LIST,
    ),
    "Sympa, an encoded comment": (
        '"Jo Doe" (=?utf-8?q?jo=40example=2Ecom?=) <dev@lists.example.org>',
        LIST,
    ),
    "Sympa, on behalf of a name": (
        '"Dev" (on behalf of Jo Doe) <dev@lists.example.org>',
        f"{LIST}\nReply-To: Jo Doe <jo@example.com>",
    ),
    "an address in the name": ('"Jo Doe <jo@example.com> via Dev" <dev@lists.example.org>', LIST),
    "Yahoo Groups": ('"Jo Doe jo@example.com [dev]" <dev@groups.example.org>', GROUP),
    "LISTSERV": ("Jo Doe <0000012ab34c-dmarc-request@lists.example.org>",
                 f"{LIST}\nReply-To: Jo Doe <jo@example.com>"),
    "the list's address under a person's name": (
        "Jo Doe <dev@lists.example.org>",
        f"{LIST}\nCc: Jo Doe <jo@example.com>",
    ),
    "the list's address under a person's name, answers to the author": (
        "Jo Doe <dev@lists.example.org>",
        f"{LIST}\nReply-To: jo@example.com",
    ),
    "words between the author and the list in any language": (
        "Jo Doe über Dev <dev@lists.example.org>",
        f"{LIST}\nReply-To: Jo Doe <jo@example.com>",
    ),
    "RFC 9057": ("Jo Doe <dev@lists.example.org>", f"{LIST}\nAuthor: Jo Doe <jo@example.com>"),
})  # fmt: skip
def test_author_of_a_rewritten_from_is_found(sender: str, others: str) -> None:
    found = read(f"From: {sender}\n{others}")
    assert (found.from_name, found.from_email) == ("Jo Doe", "jo@example.com")
    assert "munged_from" in found.flags
    assert "author_uncertain" not in found.flags


@cases("sender, others, email", {
    "a gateway that sends answers to the list of List-Post": (
        '"Jo Doe via GitHub" <git@example.org>',
        "List-Post: <mailto:dev@lists.example.org>\nTo: commits@lists.example.org\n"
        "Reply-To: dev@lists.example.org",
        "git@example.org",
    ),
    "to the list of List-Id": (
        '"Jo Doe (via GitHub)" <git@example.org>',
        "List-Id: <dev.arrow.example.org>\nReply-To: dev@arrow.example.org",
        "git@example.org",
    ),
    "to the list in To": ("Jo Doe via GitHub <git@example.org>",
                          "To: dev@lists.example.org\nReply-To: dev@lists.example.org",
                          "git@example.org"),
    "the list under the author's name": (
        "Jo Doe via Dev <dev@lists.example.org>",
        f"{LIST}\nReply-To: Jo Doe <dev@lists.example.org>",
        "",
    ),
    "a list known by To alone": (
        "Jo Doe via Dev <dev@lists.example.org>",
        "To: dev@lists.example.org",
        "",
    ),
    "answers to two others": (
        "Jo Doe via Dev <dev@lists.example.org>",
        f"{LIST}\nReply-To: ann@example.com, bob@example.com",
        "",
    ),
    "a person's name": ("Jo Doe <dev@lists.example.org>", LIST, ""),
    "LISTSERV": ("Jo Doe <0000012ab34c-dmarc-request@lists.example.org>", LIST, ""),
})  # fmt: skip
def test_unknown_author_is_not_guessed(sender: str, others: str, email: str) -> None:
    found = read(f"From: {sender}\n{others}")
    assert (found.from_name, found.from_email) == ("Jo Doe", email)
    assert "author_uncertain" in found.flags


def test_list_on_behalf_of_an_address_has_its_author() -> None:
    found = read(f'From: "Dev" (on behalf of jo@example.com) <dev@lists.example.org>\n{LIST}')
    assert (found.from_name, found.from_email) == ("", "jo@example.com")


@pytest.mark.parametrize("enclosed", ["Jo Doe <jo@example.com>", "Ann Roe <ann@example.com>"])
def test_wrapped_mail_has_the_author_of_the_enclosed(enclosed: str) -> None:
    found = read(
        f"From: Jo Doe via Dev <dev@lists.example.org>\n{LIST}",
        f"Content-Type: message/rfc822\n\nFrom: {enclosed}\nSubject: x\n\nx",
    )
    is_same = enclosed.startswith("Jo")
    assert found.from_email == ("jo@example.com" if is_same else "")
    assert ("author_uncertain" in found.flags) != is_same


@pytest.mark.parametrize(
    ("field", "list_id"),
    [
        (b"List-Id: <a.example.org>", "a.example.org"),
        (b"List-Id: a.example.org", "a.example.org"),
        (b"List-Id: The list a. <a@example.org>", "a.example.org"),
        (b"List-Id: The list of a a.example.org", "a.example.org"),
        (b"List-Id: A <a.\n example.org>", "a.example.org"),
        (b"X-Mailing-List: a@vger.example.org", "a.vger.example.org"),
        (b"Sender: owner-a@example.org", "a.example.org"),
        (b"Sender: a-owner+M123@example.org", "a.example.org"),
        (b"X-Mailing-List: a\nSender: owner-b@example.org", "b.example.org"),
        (b"Sender: jo@example.org", ""),
        (b"X: y", ""),
    ],
)
def test_list_is_found(field: bytes, list_id: str) -> None:
    assert (
        parse_message(raw_message(field + b"\n\nx"), month="2026-01", dialect="pg").list_id
        == list_id
    )

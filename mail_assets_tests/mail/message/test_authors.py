"""The author of a rewritten From, and the list that a message names."""

import pytest

from mail_assets.mail.message.message import Message
from mail_assets.mail.message.parse import parse_message
from mail_assets_tests.mail.mails import raw_message

LIST = "List-Id: Dev list <dev.lists.example.org>\nTo: dev@lists.example.org"
GROUP = "Mailing-List: list dev@groups.example.org; contact dev-owner@groups.example.org"


def read(header: str, body: str = "") -> Message:
    head = header.encode() + b"\nMessage-ID: <1@x>\nDate: Mon, 5 Jan 2026 15:18:12 +0000\n"
    return parse_message(
        raw_message(head + body.encode() if body else head + b"\nx"), month="2026-01", dialect="pg"
    )


@pytest.mark.parametrize(
    ("sender", "others", "name", "email"),
    [
        pytest.param("Jo Doe <jo@example.com>", LIST, "Jo Doe", "jo@example.com", id="plain"),
        pytest.param(
            "Jo Doe <jo@example.com>",
            "Reply-To: ann@example.com\nCc: Jo Doe <jo@example.com>",
            "Jo Doe",
            "jo@example.com",
            id="a copy to oneself",
        ),
        pytest.param(
            "Carlo Via Bassi <carlo@example.com>",
            LIST,
            "Carlo Via Bassi",
            "carlo@example.com",
            id="a surname",
        ),
        pytest.param(
            "Dev list <dev@lists.example.org>",
            LIST,
            "Dev list",
            "dev@lists.example.org",
            id="a list writes to itself",
        ),
        pytest.param(
            "dev@lists.example.org",
            LIST,
            "",
            "dev@lists.example.org",
            id="a list writes without a name",
        ),
        pytest.param("via <v@example.com>", LIST, "via", "v@example.com", id="named via"),
        pytest.param(
            "bounce+jo=example.com@lists.example.org",
            LIST,
            "",
            "bounce+jo=example.com@lists.example.org",
            id="a bounce",
        ),
        pytest.param("jo=doe.org@example.com", LIST, "", "jo=doe.org@example.com", id="="),
    ],
)
def test_ordinary_mail_has_its_sender_for_author(
    sender: str, others: str, name: str, email: str
) -> None:
    found = read(f"From: {sender}\n{others}")
    assert (found.from_name, found.from_email) == (name, email)
    assert not {"munged_from", "author_uncertain"} & set(found.flags)


@pytest.mark.parametrize(
    ("sender", "others"),
    [
        pytest.param(
            "Jo Doe via Dev <dev@lists.example.org>",
            f"{LIST}\nReply-To: Jo Doe <jo@example.com>",
            id="Mailman, answers to the author",
        ),
        pytest.param(
            "Jo Doe via Dev <dev@lists.example.org>",
            f"{LIST}\nReply-To: The list <dev@lists.example.org>, jo@example.com",
            id="Mailman, answers to both",
        ),
        pytest.param(
            "Jo Doe via Dev <dev@lists.example.org>",
            f"{LIST}\nReply-To: dev@lists.example.org\nCc: Ann <a@x.org>, Jo Doe <jo@example.com>",
            id="Mailman, answers to the list",
        ),
        pytest.param(
            "Jo Doe vía Dev <dev@lists.example.org>",
            f"{LIST}\nCc: Jo Doe <jo@example.com>",
            id="Mailman, in Spanish",
        ),
        pytest.param(
            '"Jo Doe (Dev 経由)" <dev@lists.example.org>',
            f"{LIST}\nCc: Jo Doe <jo@example.com>",
            id="Mailman, in Japanese",
        ),
        pytest.param(
            "\"'Jo Doe' via Dev\" <dev@groups.example.org>",
            f"{GROUP}\nX-Original-Sender: jo@example.com\nReply-To: dev@groups.example.org",
            id="Google Groups",
        ),
        pytest.param(
            "\"'Jo Doe' via Dev\" <dev@groups.example.org>",
            f"{GROUP}\nX-Original-From: Jo Doe <jo@example.com>\nReply-To: a@x.org, b@x.org",
            id="Google Groups, original From",
        ),
        pytest.param(
            "Jo Doe via groups.io <jo=example.com@groups.io>",
            "List-Id: <dev.groups.io>\nReply-To: dev@groups.io",
            id="groups.io",
        ),
        pytest.param(
            "Jo Doe <jo=example.com@groups.io>",
            "List-Id: <main.dev.groups.io>",
            id="groups.io, without words",
        ),
        pytest.param("Jo Doe <jo=40example.com@dmarc.example.org>", LIST, id="the IETF"),
        pytest.param(
            '"Jo Doe" (via dev Mailing List) <dev@lists.example.org>',
            f"{LIST}\nReply-To: Jo Doe <jo@example.com>",
            id="Sympa",
        ),
        pytest.param(
            '"Jo Doe" (jo@example.com) <dev@lists.example.org>', LIST, id="Sympa, name and email"
        ),
        pytest.param(
            '"Jo Doe" (jo@example.com via dev Mailing List) <dev@lists.example.org>',
            LIST,
            id="Sympa, name, email and list",
        ),
        pytest.param(
            '"Jo Doe" (=?utf-8?q?jo=40example=2Ecom?=) <dev@lists.example.org>',
            LIST,
            id="Sympa, an encoded comment",
        ),
        pytest.param(
            '"Dev" (on behalf of Jo Doe) <dev@lists.example.org>',
            f"{LIST}\nReply-To: Jo Doe <jo@example.com>",
            id="Sympa, on behalf of a name",
        ),
        pytest.param(
            '"Jo Doe <jo@example.com> via Dev" <dev@lists.example.org>',
            LIST,
            id="an address in the name",
        ),
        pytest.param(
            '"Jo Doe jo@example.com [dev]" <dev@groups.example.org>', GROUP, id="Yahoo Groups"
        ),
        pytest.param(
            "Jo Doe <0000012ab34c-dmarc-request@lists.example.org>",
            f"{LIST}\nReply-To: Jo Doe <jo@example.com>",
            id="LISTSERV",
        ),
        pytest.param(
            "Jo Doe <dev@lists.example.org>",
            f"{LIST}\nCc: Jo Doe <jo@example.com>",
            id="the list's address under a person's name",
        ),
        pytest.param(
            "Jo Doe <dev@lists.example.org>",
            f"{LIST}\nReply-To: jo@example.com",
            id="the list's address under a person's name, answers to the author",
        ),
        pytest.param(
            "Jo Doe über Dev <dev@lists.example.org>",
            f"{LIST}\nReply-To: Jo Doe <jo@example.com>",
            id="words between the author and the list in any language",
        ),
        pytest.param(
            "Jo Doe <dev@lists.example.org>",
            f"{LIST}\nAuthor: Jo Doe <jo@example.com>",
            id="RFC 9057",
        ),
    ],
)
def test_author_of_a_rewritten_from_is_found(sender: str, others: str) -> None:
    found = read(f"From: {sender}\n{others}")
    assert (found.from_name, found.from_email) == ("Jo Doe", "jo@example.com")
    assert "munged_from" in found.flags
    assert "author_uncertain" not in found.flags


@pytest.mark.parametrize(
    ("sender", "others", "email"),
    [
        pytest.param(
            '"Jo Doe via GitHub" <git@example.org>',
            "List-Post: <mailto:dev@lists.example.org>\nTo: commits@lists.example.org\n"
            "Reply-To: dev@lists.example.org",
            "git@example.org",
            id="a gateway that sends answers to the list of List-Post",
        ),
        pytest.param(
            '"Jo Doe (via GitHub)" <git@example.org>',
            "List-Id: <dev.arrow.example.org>\nReply-To: dev@arrow.example.org",
            "git@example.org",
            id="to the list of List-Id",
        ),
        pytest.param(
            "Jo Doe via GitHub <git@example.org>",
            "To: dev@lists.example.org\nReply-To: dev@lists.example.org",
            "git@example.org",
            id="to the list in To",
        ),
        pytest.param(
            "Jo Doe via Dev <dev@lists.example.org>",
            f"{LIST}\nReply-To: Jo Doe <dev@lists.example.org>",
            "",
            id="the list under the author's name",
        ),
        pytest.param(
            "Jo Doe via Dev <dev@lists.example.org>",
            "To: dev@lists.example.org",
            "",
            id="a list known by To alone",
        ),
        pytest.param(
            "Jo Doe via Dev <dev@lists.example.org>",
            f"{LIST}\nReply-To: ann@example.com, bob@example.com",
            "",
            id="answers to two others",
        ),
        pytest.param("Jo Doe <dev@lists.example.org>", LIST, "", id="a person's name"),
        pytest.param(
            "Jo Doe <0000012ab34c-dmarc-request@lists.example.org>", LIST, "", id="LISTSERV"
        ),
    ],
)
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

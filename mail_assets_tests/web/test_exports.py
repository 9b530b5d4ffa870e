"""Mailboxes and files are complete, valid, and contain only published data."""

import contextlib
import datetime as dt
import gzip
import mailbox
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.web import exports, searchers
from mail_assets.web.documents import Documents
from mail_assets.web.exports import COUNT, Exports, name_file, quote_raw, write_message
from mail_assets.web.privacy import HIDDEN, SHOWN, Publication
from mail_assets_tests.sample_corpus import ROOT, Corpus
from mail_assets_tests.waits import wait_until
from mail_assets_tests.web.conftest import fill, open_service, serving_world
from mail_assets_tests.web.readings import split_mailbox
from mail_assets_tests.web.test_privacy import HEAD, TAIL, UUENCODED, armour
from mail_assets_tests.world import World, mail

Split = Callable[[bytes], dict[str, str]]


@pytest.fixture
def split(tmp_path: Path) -> Split:
    """Split a mailbox with git; return the texts by id."""

    def split(packed: bytes) -> dict[str, str]:
        return {
            one["message-id"].strip("<>"): read_text(one).rstrip("\n")
            for one in split_mailbox(packed, tmp_path)
        }

    return split


def test_git_reads_a_thread_from_its_mailbox(private: httpx.Client, split: Split) -> None:
    response = private.get(f"/thread.mbox.gz/{ROOT}")
    assert response.headers["content-type"] == "application/gzip"
    name = f"thread-{ROOT.replace('@', '-')}.mbox.gz"
    assert response.headers["content-disposition"] == f'attachment; filename="{name}"'
    posts = private.get(f"/thread.json/{ROOT}").json()["posts"]
    expected = {
        post["message_id"]: post["body_text"].rstrip("\n") for post in posts if not post["is_ghost"]
    }
    assert split(response.content) == expected
    data = gzip.decompress(response.content)
    # the last line has the number of messages: so the mailbox is complete
    assert data.count(b"\nX-Export-Messages: ") == 1
    assert f"X-Export-Messages: {len(expected)}\n" in data.decode().rpartition("\nFrom mboxrd@z")[2]
    assert f"Archived-At: <https://archive.example.org/message/{ROOT}>\n".encode() in data


def test_mailbox_of_a_search_has_all_its_pages(
    public: httpx.Client, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "MAX_LIMIT", 7)
    parameters = {"list": "harbor-dev", "group": "message"}
    exported = split(public.get("/search.mbox.gz", params=parameters).content)
    shown = public.get("/search.json", params={**parameters, "limit": "100"}).json()["hits"]
    assert len(shown) > 20
    assert [*exported] == [hit["message_id"] for hit in shown]


def test_mailbox_waits_for_a_slot_between_pages(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "MAX_LIMIT", 7)
    with open_service(corpus.settings) as service:
        monkeypatch.setattr(searchers, "WAIT_SECONDS", 0.0)
        mailboxes = Exports(Documents(service, Publication()), "https://archive.example.org")
        begun = mailboxes.search({"list": "harbor-dev", "group": "message"})
        with ThreadPoolExecutor(1) as threads:
            with service._lend_slot():
                rest = threads.submit(lambda: b"".join(begun.pieces))
                wait_until(lambda: rest.done() or bool(service._permits._waiting))
                assert not rest.done()
            assert gzip.decompress(rest.result()).count(b"\nMessage-ID: ") > 20


@pytest.mark.parametrize("query", ["lease limit:2", "lease offset:1", "nothingofthekind"])
def test_query_with_limit_or_offset_is_exported_once(public: httpx.Client, query: str) -> None:
    response = public.get("/search.mbox.gz", params={"q": query, "mode": "fulltext"})
    data = gzip.decompress(response.content)
    found = [line for line in data.split(b"\n") if line.startswith(b"Message-ID: ")]
    assert len(found) == len({*found})
    shown = public.get("/search.json", params={"q": query, "mode": "fulltext"}).json()["hits"]
    assert {f"Message-ID: <{hit['message_id']}>".encode() for hit in shown} <= {*found}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/search.mbox.gz?q=has:pach", 400),
        ("/thread.mbox.gz/nobody@example.org", 404),
        ("/message.mbox/nobody@example.org", 404),
        (f"/message/{ROOT}/attachment/1", 404),
        (f"/message/{ROOT}/attachment/{'9' * 5000}", 400),
        ("/message/attachment/1", 400),
    ],
)
def test_wrong_export_is_an_error_and_no_file(public: httpx.Client, path: str, status: int) -> None:
    response = public.get(path)
    assert response.status_code == status
    assert "content-disposition" not in response.headers


TEXT = b"From: Jo <jo@example.org>\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b \xc3\xbc\n"
ATTACHED = """\
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b"""


def attach(*parts: str) -> str:
    return (
        "".join(f"--b\n{part}\n" for part in ("Content-Type: text/plain\n\nSee.", *parts)) + "--b--"
    )


@pytest.fixture
def harbor(world: World) -> World:
    """A message with a patch, a picture and a hostile name."""
    body = attach(
        'Content-Type: text/x-diff; name="fix.patch"\nContent-Transfer-Encoding: 8bit\n'
        "Content-Disposition: attachment; filename=fix.patch\n\n" + TEXT.decode(),
        "Content-Type: image/png\nContent-Transfer-Encoding: base64\n"
        'Content-Disposition: attachment; filename="a\\"; x=../y.png"\n\niVBORw0KGgoAAAANSUhEUg==',
        "Content-Type: message/rfc822\nContent-Disposition: attachment\n\n"
        "From: Jo <jo@example.org>\nSubject: x\n\nText",
    )
    fill(world, mail("a", body, headers=ATTACHED), mail("b"), last="messages")
    return world


def test_hidden_addresses_allow_only_masked_text_files(harbor: World) -> None:
    with serving_world(harbor) as client:
        links = [f"/message/a@example.org/attachment/{n}" for n in (1, 2, 3)]
        for document in (
            client.get("/message.json/a@example.org").json(),
            client.get("/thread.json/a@example.org").json()["posts"][0],
        ):
            offered = [one["url"] for one in document["attachments"]]
            assert offered == [links[0], None, None]  # a picture and a message are not served
            assert "html_url" not in document["attachments"][1]
        page = client.get("/message/a@example.org").text
        assert [link in page for link in links] == [True, False, False]
        patch = client.get(links[0])
        assert patch.headers["content-type"] == "text/plain; charset=utf-8"
        assert patch.headers["x-content-type-options"] == "nosniff"
        disposition = 'attachment; filename="attachment-1-fix.patch"'
        assert patch.headers["content-disposition"] == disposition
        masked = TEXT.decode().replace("jo@example.org", "\N{BULLET}" * 14)
        assert patch.text.strip() == masked.strip()
        for link in links[1:]:
            assert client.get(link).status_code == 403
        assert client.get("/message/a@example.org/attachment/4").status_code == 404


KEYS = [
    ("application/pgp-keys", "as the type says"),
    ("Application/PGP-Keys", "as the type says"),
    ("text/plain", f"{HEAD}\n\n{armour()}\n{TAIL}"),
    ("text/plain", f"{'words ' * 1_000}\n{HEAD}\n\n{armour()}\n{TAIL}"),
    ("application/octet-stream", armour()),
    ("text/x-uuencode", UUENCODED),
]


def test_hidden_addresses_forbid_keys_and_encoded_files(world: World) -> None:
    parts = [f"Content-Type: {type}; name=x.asc\n\n{text}" for type, text in KEYS]
    code = "+a line of code\n" * 200
    parts.append(f"Content-Type: text/x-diff; name=x.patch\n\n{code}+{armour()}\n")
    fill(world, mail("a", attach(*parts), headers=ATTACHED), last="messages")
    with serving_world(world) as client:
        for number, part in enumerate(KEYS, 1):
            response = client.get(f"/message/a@example.org/attachment/{number}")
            assert response.status_code == 403, part
        served = client.get(f"/message/a@example.org/attachment/{len(KEYS) + 1}")
        assert served.status_code == 200
        assert "+a line of code" in served.text
        assert not [line for line in armour().split("\n") if line in served.text]


#: Type, text, and the text with masked parts as X.
FOLDED = [
    ("text/calendar; name=x.ics",
     "BEGIN:VCALENDAR\nORGANIZER:mailto:jo.d\n oe@example.org\nSUMMARY:A\n  boat",
     "BEGIN:VCALENDAR\nORGANIZER:mailto:XXXX\n XXXXXXXXXXXXXX\nSUMMARY:A\n  boat"),
    ("text/vcard; name=x.vcf",
     "BEGIN:VCARD\nEMAIL:jo.doe\n @example.org\nNOTE:=\nann.moor@harbor.exa=\nmple",
     "BEGIN:VCARD\nEMAIL:XXXXXX\n XXXXXXXXXXXX\nNOTE:=\nXXXXXXXXXXXXXXXXXXX=\nXXXX"),
    ("text/x-ldif; name=x.ldif", "dn: cn=Jo\nmail: jo.doe@exam\n ple.org",
     "dn: cn=Jo\nmail: XXXXXXXXXXX\n XXXXXXX"),
    ("text/plain; name=x.eml", "Write to jo.d=\noe@example.org and to\n ann@example.org.",
     "Write to XXXX=\nXXXXXXXXXXXXXX and to\n XXXXXXXXXXXXXXX."),
    ("text/x-diff; name=x.patch", "+int boats =\n+    count(at);", "+int boats =\n+    count(at);"),
]  # fmt: skip


def test_addresses_in_folded_lines_are_masked(world: World) -> None:
    parts = [f"Content-Type: {type}\n\n{text}\n" for type, text, _ in FOLDED]
    fill(world, mail("a", attach(*parts), headers=ATTACHED), last="messages")
    with serving_world(world) as client:
        for number, (type, _, masked) in enumerate(FOLDED, 1):
            shown = client.get(f"/message/a@example.org/attachment/{number}").text
            assert shown.strip() == masked.replace("X", "\N{BULLET}").strip(), type


def test_shown_addresses_allow_the_original_bytes(harbor: World) -> None:
    with serving_world(harbor, addresses="shown") as client:
        patch = client.get("/message/a@example.org/attachment/1")
        assert patch.content.strip() == TEXT.strip()
        assert patch.headers["content-type"] == "application/octet-stream"
        picture = client.get("/message/attachment/2?id=a@example.org")
        assert picture.content.startswith(b"\x89PNG")
        assert picture.headers["content-disposition"] == (
            'attachment; filename="attachment-2-y.png"'
        )
        raw = client.get("/message.mbox/a@example.org").text
        assert "Content-Type: multipart/mixed; boundary=b" in raw


MESSAGE: dict[str, Any] = {
    "message_id": "a@example.org",
    "lists": ["harbor"],
    "sent_at": "2024-03-04T09:00:00Z",
    "subject": "Whales",
    "from_name": "Ann",
    "from_email": "ann@example.org",
    "recipients": ["harbor@lists.example.org"],
    "cc": [],
    "in_reply_to": [],
    "references": [],
    "body_text": "A text.\n",
    "attachments": [],
    "by_subject": False,
}

#: Text that PostgreSQL can store.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=200)


def read_back(written: bytes) -> Any:
    """Return the unquoted message of an mbox with one message."""
    from_line, _, rest = written.partition(b"\n")
    assert from_line.startswith(b"From mboxrd@z ")
    lines = rest.removesuffix(b"\n").split(b"\n")
    assert not [line for line in lines if line.startswith(b"From ")]
    plain = [line[1:] if line.lstrip(b">").startswith(b"From ") else line for line in lines]
    return message_from_bytes(b"\n".join(plain), policy=policy.default)


def read_text(message: Any) -> str:
    return str(message.get_payload(decode=True).decode())


@pytest.mark.parametrize("body", [
    "From here on\n>From there\n>>>From everywhere\n",
    "\nFrom nobody Mon Mar  4 09:00:00 2024\nSubject: another\n\ntext\n", "no line end",
    "Ünïcode\u2028in lines\n", "",
])  # fmt: skip
def test_mboxrd_body_is_read_back_unchanged(body: str) -> None:
    message = read_back(write_message({**MESSAGE, "body_text": body}, {}))
    assert read_text(message).rstrip("\n") == body.rstrip("\n")


@settings(derandomize=True, max_examples=100, deadline=None)
@given(TEXTS, TEXTS, TEXTS)
def test_field_value_begins_no_other_field(subject: str, name: str, file: str) -> None:
    given = {"subject": subject, "from_name": name, "attachments": [{"name": file, "type": "x/y"}]}
    written = write_message({**MESSAGE, **given}, {COUNT: "1"})
    header, _, body = written.partition(b"\n\n")
    names = [line.split(b":")[0] for line in header.split(b"\n")[1:] if line[:1] not in b" \t"]
    assert names == [
        b"From", b"To", b"Date", b"Subject", b"Message-ID", b"X-List", b"X-Attachment",
        b"X-Export-Messages", b"MIME-Version", b"Content-Type", b"Content-Transfer-Encoding",
    ]  # fmt: skip
    assert body == b"A text.\n\n"


def test_names_and_ids_are_read_back() -> None:
    given = {
        "from_name": 'Jürgen "the whale", of the sea',
        "message_id": "ü 1@example.org\r\nX: y",
        "references": ["1@example.org", "2@example.org"],
        "subject": "Größe " * 40,
    }
    message = read_back(write_message({**MESSAGE, **given}, {}))
    assert message["from"].addresses[0].display_name == given["from_name"]
    assert message["from"].addresses[0].addr_spec == "ann@example.org"
    assert message["references"].split() == ["<1@example.org>", "<2@example.org>"]
    assert message["subject"] == ("Größe " * 40).strip()
    assert "x" not in message
    assert b"Message-ID: <\xc3\xbc1@example.orgX:y>\n" in write_message({**MESSAGE, **given}, {})


def test_hidden_sender_has_an_invalid_address() -> None:
    hidden = {key: MESSAGE[key] for key in MESSAGE.keys() - {"from_email", "recipients", "cc"}}
    message = read_back(write_message(hidden, {}))
    assert message["from"].addresses[0].addr_spec == "hidden@addresses.invalid"
    assert message["to"] is None


def test_raw_message_is_quoted(tmp_path: Path) -> None:
    raw = b"Subject: x\n\nFrom me\n>From you\nend"
    when = dt.datetime(2024, 3, 4, 9, tzinfo=dt.UTC)
    (tmp_path / "mbox").write_bytes(quote_raw(raw, when) * 2)
    with contextlib.closing(mailbox.mbox(tmp_path / "mbox")) as box:
        assert len(box) == 2
    assert quote_raw(raw, when).endswith(b"\n\n>From me\n>>From you\nend\n\n")


@pytest.mark.parametrize(
    ("about", "name"),
    [
        ("a@example.org", "thread-a-example.org.mbox"),
        ("../../etc/passwd", "thread-etc-passwd.mbox"),
        ('x"\r\nSet-Cookie: a=b', "thread-x-Set-Cookie-a-b.mbox"),
        ("\0\u202e", "thread.mbox"),
        ("x" * 1000, f"thread-{'x' * 80}.mbox"),
    ],
)
def test_file_name_is_plain(about: str, name: str) -> None:
    assert name_file("thread", about, ".mbox") == name


PATCH = """\
Add an author.

Signed-off-by: {author}
---
diff --git a/names b/names
--- a/names
+++ b/names
@@ -1,2 +1,3 @@
 one
+{name}
 two
"""


def apply_patch(data: bytes, folder: Path) -> bool:
    """Apply a mailbox to a new repository with git; return True on success."""
    folder.mkdir()
    (folder / "names").write_text("one\ntwo\n")
    (folder / "mbox").write_bytes(data)
    me = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (["init", "-q"], ["add", "names"], [*me, "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    apply = ["git", *me, "am", "-q", "--patch-format=mboxrd", "mbox"]
    return subprocess.run(apply, cwd=folder, capture_output=True, check=False).returncode == 0


def test_patch_with_a_hidden_address_says_so(world: World, tmp_path: Path) -> None:
    altered = PATCH.format(author="Jo <jo@example.org>", name="ann@example.org")
    whole = PATCH.format(author="Jo", name="Ann")
    fill(world, mail("a", altered), mail("b", whole), last="messages")
    for shown in (False, True):
        with serving_world(world, SHOWN if shown else HIDDEN) as client:
            hidden, plain = (client.get(f"/message.mbox/{id}@example.org") for id in "ab")
            document = client.get("/message.json/a@example.org").json()
            page = client.get("/message/a@example.org").text
        assert apply_patch(plain.content, tmp_path / f"plain-{shown}")
        assert b"X-Addresses-Hidden" not in plain.content
        assert apply_patch(hidden.content, tmp_path / f"altered-{shown}") == shown
        assert (b"X-Addresses-Hidden: 2\n" in hidden.content) != shown
        assert (b"2 addresses are hidden in this text" in hidden.content) != shown
        assert ("2 addresses hidden in this text: its patch does not apply" in page) != shown
        said = (document.get("addresses_hidden"), document.get("patch_altered"))
        assert said == ((None, None) if shown else (2, True))

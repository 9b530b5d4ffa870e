"""Texts under one Message-ID: which are one message, which contest it, and which one is first."""

import pytest

from mail_assets_tests.world import APRIL, HARBOR, MARCH, PIER, World, mail

TRUE, FALSE = "We decided not to ship it.", "We decided to ship it. See http://evil.example"
FOOTER = (
    "\n_______________________________________________\npier mailing list\nhttps://x.example/pier\n"
)


def arrived(day: int, text: str = TRUE, body: str = "", **fields: str) -> bytes:
    """A mail with one id that its list got on a day of March."""
    line = f"From list@example.org Fri Mar {day:2} 10:00:00 2024"
    return mail("decision", body or text, **{"subject": "decision", "from_line": line, **fields})


GENUINE = arrived(10)
HOP = "Received: from x by list.example.org; {}, {} Mar 2024 09:00:00 +0000"

#: Name -> the other copy, its list, and whether it contests; the genuine one is in HARBOR, March.
SHAPES: dict[str, tuple[bytes, str, str, bool]] = {
    "earlier Date": (
        arrived(11, FALSE, date="Fri, 01 Mar 2024 09:00:00 +0000"), PIER, MARCH, True,
    ),
    "later Date": (arrived(11, FALSE, date="Wed, 20 Mar 2024 09:00:00 +0000"), PIER, MARCH, True),
    "one word": (arrived(11, TRUE.replace("not", "now")), PIER, MARCH, True),
    "one sign": (arrived(11, TRUE.replace(".", "?")), PIER, MARCH, True),
    "another author": (arrived(11, sender="eve@example.com"), PIER, MARCH, True),
    "another subject": (arrived(11, subject="retraction"), PIER, MARCH, True),
    "another Date alone": (
        arrived(11, date="Fri, 01 Mar 2024 09:00:00 +0000"), PIER, MARCH, True,
    ),
    "an earlier month": (
        arrived(11, FALSE, date="Thu, 01 Feb 2024 09:00:00 +0000"), PIER, "2024-02", True,
    ),
    "a later month": (arrived(11, FALSE), PIER, APRIL, True),
    "the same list": (arrived(11, FALSE), HARBOR, MARCH, True),
    "the same list, another month": (arrived(11, FALSE), HARBOR, "2024-02", True),
    "forged hops below": (
        arrived(11, FALSE, headers=f"{HOP.format('Mon', 11)}\n{HOP.format('Fri', 1)}"),
        PIER, MARCH, True,
    ),
    "a forged hop alone": (
        arrived(11, FALSE, headers=HOP.format("Fri", 1)), PIER, MARCH, True,
    ),
    "other references": (
        arrived(11, FALSE, references="<other@example.org>"), PIER, MARCH, True,
    ),
    "an attached file": (
        arrived(
            11,
            body=f"--b\nContent-Type: text/plain\n\n{TRUE}\n--b\nContent-Type: text/x-diff\n"
            "Content-Disposition: attachment; filename=evil.patch\n\n+evil\n--b--",
            headers="MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b",
        ),
        PIER, MARCH, True,
    ),
    "the same": (arrived(11), PIER, MARCH, False),
    "a footer": (arrived(11, TRUE + FOOTER), PIER, MARCH, False),
    "a tag": (arrived(11, subject="[pier] decision"), PIER, MARCH, False),
    "other lines": (arrived(11, TRUE.replace("not ", "not\n") + "\n\n"), PIER, MARCH, False),
    "the author's other name": (arrived(11, headers="Cc: pier@example.org"), PIER, MARCH, False),
    "another encoding": (
        arrived(
            11, body="V2UgZGVjaWRlZCBub3QgdG8gc2hpcCBpdC4K",
            headers="MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n"
            "Content-Transfer-Encoding: base64",
        ),
        PIER, MARCH, False,
    ),
}  # fmt: skip

CONTESTED = "list, month, variant, place"


def load(world: World, name: str, genuine_first: bool = True) -> None:
    other, list_name, month, _ = SHAPES[name]
    if (list_name, month) == (HARBOR, MARCH):
        pair = [GENUINE, other] if genuine_first else [other, GENUINE]
        world.load(*pair)
        return
    loads = [(GENUINE, HARBOR, MARCH), (other, list_name, month)]
    for one, where, when in loads if genuine_first else reversed(loads):
        world.load(one, list_name=where, month=when)


def first(world: World) -> str:
    [(text,)] = world.rows("first_copy('decision@example.org')", "body_text")
    return str(text).strip()


@pytest.mark.parametrize("genuine_first", [True, False])
@pytest.mark.parametrize("name", SHAPES)
def test_another_content_contests_the_id(world: World, name: str, genuine_first: bool) -> None:
    load(world, name, genuine_first)
    other, _, _, contests = SHAPES[name]
    found = world.rows("contested_texts", CONTESTED)
    assert len(found) == (2 if contests else 0)
    assert first(world) == TRUE
    if contests:
        [(source,)] = world.rows(
            "messages join contested_texts using (list, month, message_id, variant)",
            "list", "place = 1",
        )  # fmt: skip
        assert source == HARBOR
    assert other

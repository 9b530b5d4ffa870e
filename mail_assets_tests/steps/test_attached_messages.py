"""Attached messages in rows: their text is searched, their quotes are not."""

import pytest

from mail_assets_tests.world import HARBOR, MARCH, World

DIGEST = b"""\
From list@example.org Mon Mar  4 10:00:00 2024
From: list@example.org
Date: Mon, 4 Mar 2024 10:00:00 +0000
Subject: harbor Digest
Message-ID: <digest@example.org>
Content-Type: multipart/digest; boundary=b

--b

From: Ann <ann@example.org>
Subject: Mooring

> an albatross was quoted
The walrus moored at noon.
--
Ann
--b--

"""


@pytest.mark.parametrize(
    ("word", "is_found"), [("walrus", True), ("mooring", True), ("albatross", False)]
)
def test_text_of_an_attached_message_is_searched(world: World, word: str, is_found: bool) -> None:
    world.archive(MARCH, DIGEST, list_name=HARBOR)
    world.archives(MARCH, HARBOR)
    world.messages()
    found = world.rows("messages", "message_id", f"search @@ to_tsquery('english', '{word}')")
    assert found == ([("digest@example.org",)] if is_found else [])

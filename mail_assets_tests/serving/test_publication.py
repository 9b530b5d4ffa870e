"""The one door: what is not listed as an id is masked, wherever it stands."""

import base64
import hashlib
from collections.abc import Iterable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from mail_assets.web.addresses import MASK
from mail_assets.web.privacy import HIDDEN, SHOWN, Publication

DOCUMENT = {
    "message_id": "id1@example.org",
    "from_email": "ann@example.org",
    "from_name": "ann@example.org",
    "new_field": [{"deep": ("by ann@example.org", 3, None)}],
    "authors": {"ann@example.org": 2},
}


def test_a_field_that_nobody_thought_of_is_masked() -> None:
    seen = Publication(HIDDEN).publish(DOCUMENT)
    assert seen == {
        "message_id": "id1@example.org",
        "from_name": "\u2022" * 15,
        "new_field": [{"deep": [f"by {chr(0x2022) * 15}", 3, None]}],
    }


def test_senders_of_whom_the_same_is_left_are_counted_together() -> None:
    senders = {"ann@example.org": 2, "Bo": 1, "bob@example.org": 3}
    seen = Publication(HIDDEN).publish({"senders": senders})
    assert seen == {"senders": {MASK * 15: 5, "Bo": 1}}


def test_nothing_is_masked_where_addresses_are_shown() -> None:
    assert Publication(SHOWN).publish(DOCUMENT) is DOCUMENT


#: Of these any disguise of an address is made, and much that is none.
PIECES = [
    "jo", "a", "example.org", ".com", "@", "@@", " @ ", "@\n", " at ", "at", "(at)", "-at-", "%40",
    "=40", "&#64;", " dot ", "(dot)", "\n", "\n> ", " ", '"', "<", ">", ".", "-", "_", "1.2", "/",
    "\u200b", "[", "]", "x" * 30, "; ", ", ",
]  # fmt: skip


@hypothesis(max_examples=300)
@given(
    st.lists(st.sampled_from(PIECES), min_size=200, max_size=500).map("".join),
    st.lists(st.integers(0, 2_000), max_size=20),
)
def test_parts_hide_together_what_the_whole_hides(text: str, borders: list[int]) -> None:
    assert "".join(hide_parts(text, borders)) == Publication(HIDDEN).publish(text)


@pytest.mark.parametrize(
    "link", ["b.org@", "b@", "bo.org at ", "bo.org (at) ", "@b.org at ", "b+@"]
)
@pytest.mark.parametrize("size", [7, 50, 401])
def test_a_row_of_addresses_is_cut_anywhere(link: str, size: int) -> None:
    text = link * 300
    parts = "".join(hide_parts(text, range(0, len(text), size)))
    assert parts == Publication(HIDDEN).publish(text)


@pytest.mark.parametrize("size", [1, 7, 40, 64, 65, 300])
def test_parts_of_a_key_hide_what_the_whole_hides(size: int) -> None:
    data = base64.b64encode(hashlib.shake_256(b"key").digest(1_501)).decode()
    lines = "\n".join(data[at : at + 64] for at in range(0, len(data), 64))
    text = f"My key follows.\n\nVersion: 1\n\n{lines}\n=Qh7d\n\nThat was it.\n"
    parts = "".join(hide_parts(text, range(0, len(text), size)))
    whole = Publication(HIDDEN).publish(text)
    assert MASK in whole
    assert all(part in (MASK, one) for part, one in zip(parts, whole, strict=True))


def hide_parts(text: str, borders: Iterable[int]) -> Iterator[str]:
    """Yield the parts of a text between some borders, as they may be seen."""
    for start, end in pairwise(sorted({0, *borders, len(text)} & {*range(len(text) + 1)})):
        yield Publication(HIDDEN).publish_part(text, start, end)

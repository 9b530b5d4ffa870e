"""What is encoded in a text is masked at its length, and what only looks long is not."""

import base64
import binascii
import hashlib
import textwrap

import pytest

from mail_assets.web.addresses import MASK
from mail_assets.web.privacy import is_encoded, mask_encoded

#: Bytes with an address in their middle, as a public key has them.
NOISE = b"".join(hashlib.sha512(bytes([n])).digest() for n in range(4))
KEY = NOISE + b"Ann Harbor <ann@example.org>" + NOISE[:50]
HEAD, TAIL = "-----BEGIN PGP PUBLIC KEY BLOCK-----", "-----END PGP PUBLIC KEY BLOCK-----"


def armour(width: int = 64) -> str:
    return "\n".join([*textwrap.wrap(base64.b64encode(KEY).decode(), width), "=aB3d"])


UUENCODED = (
    "begin 644 key.bin\n"
    + "".join(binascii.b2a_uu(KEY[at : at + 45]).decode() for at in range(0, len(KEY), 45))
    + "`\nend"
)


def blacken(text: str) -> str:
    return "".join(sign if sign in "\n\r >|" else MASK for sign in text)


@pytest.mark.parametrize("width", [60, 64, 76, 10_000])
@pytest.mark.parametrize("margin", ["", "> ", "> > ", "    ", "| "])
def test_lines_of_base64_are_masked_and_their_margins_are_not(width: int, margin: str) -> None:
    before, behind = "My key:\n\n", "\n\nYours,\nAnn"
    lines = textwrap.indent(armour(width), margin)
    text = before + lines + behind
    assert mask_encoded(text) == before + blacken(lines) + behind
    assert mask_encoded(text.replace("\n", "\r\n")) == mask_encoded(text).replace("\n", "\r\n")


def test_a_patch_that_adds_a_key_holds_none_of_it() -> None:
    patch = textwrap.indent(f"{HEAD}\n\n{armour()}\n{TAIL}\n", "+")
    masked = mask_encoded(patch)
    assert len(masked) == len(patch)
    assert masked.count(MASK) >= len(armour()) - armour().count("\n")
    assert HEAD in masked


def test_of_a_text_that_was_cut_the_rest_of_a_line_is_masked_too() -> None:
    for start in range(64):
        masked = mask_encoded(armour()[start:])
        assert masked == blacken(armour()[start:])


def test_uuencoded_lines_are_masked() -> None:
    masked = mask_encoded(f"See this.\n\n{UUENCODED}\nYours")
    assert len(masked) == len(f"See this.\n\n{UUENCODED}\nYours")
    assert masked.startswith("See this.\n\n")
    assert masked.endswith("`\nend\nYours")
    lines = masked.split("\n")[2:-3]
    assert all(set(line) <= {MASK, " "} for line in lines)
    without_beginning = UUENCODED.partition("\n")[2]
    assert set(mask_encoded(without_beginning).partition("\n`")[0]) <= {MASK, " ", "\n"}


PLAIN = [
    "/home/harbor/Projects/Pier/lib/python3/site/packages/twisted/internet/default",
    '  File "/home/Harbor/Pier/Python3/lib/python3/twisted/internet/base9", line 3',
    hashlib.sha256(b"x").hexdigest(),
    "=" * 72,
    "A" * 72,
    "https://lists.example.org/" + base64.b64encode(NOISE).decode()[:70],
    "MANY WORDS IN CAPITALS, AS OF A LICENCE THAT NOBODY EVER READS",
    "begin 644 is what a file of uuencode begins with\nand this is none",
    "Thanks\nAnn",
    "",
]


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_only_long_stays(text: str) -> None:
    assert mask_encoded(text) == text
    assert not is_encoded(text)


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        (f"{HEAD}\n\n{armour()}\n{TAIL}\n", True),
        ("words " * 1_000 + f"\n{HEAD}\n\nabc\n", True),
        (f"{HEAD.replace('PUBLIC', 'PRIVATE')}\n", True),
        (armour(), True),
        (UUENCODED, True),
        ("words " * 1_000 + f"\n\n{armour()}\n", False),
    ],
)
def test_a_text_with_a_key_or_mostly_encoded_is_encoded(text: str, encoded: bool) -> None:
    assert is_encoded(text) == encoded

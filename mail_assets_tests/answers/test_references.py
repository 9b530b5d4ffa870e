"""An answer names no address, Message-ID or URL that it was not given."""

from collections.abc import Iterator

import pytest

from mail_assets.answers.chat import MAX_WORD, REMOVED, ReferenceFilter
from mail_assets.openai.client import EndpointError

KNOWN = (
    "see 20240304.GE9223@solheim.example.org and https://lists.example.org/m/1 by ann@example.org"
)


def filtered(*texts: str) -> tuple[str, int]:
    references = ReferenceFilter(KNOWN)
    return "".join(references.filter(texts)), references.dropped


@pytest.mark.parametrize(
    "text",
    [
        "Ann <ann@example.org> says so in <20240304.GE9223@solheim.example.org>.",
        "See HTTPS://lists.example.org/m/1, or (https://lists.example.org/m/1).",
        "`open(2)` of user@host, at 10:30, is a://b no more than x@y.",
        "",
    ],
)
def test_what_was_given_and_what_is_no_reference_stays(text: str) -> None:
    assert filtered(text) == (text, 0)
    assert filtered(*text) == (text, 0)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("as <eve@evil.example.com> said.", f"as <{REMOVED}> said."),
        ("see https://evil.example.com/?q=1.", f"see {REMOVED}."),
        ("see http\u200bs://evil.example.com\u3002", f"see {REMOVED}\u3002"),
        ("[mail](mailto:eve@evil.example.com)", f"[mail](mailto:{REMOVED})"),
    ],
)
def test_what_was_not_given_is_removed_and_counted(text: str, shown: str) -> None:
    assert filtered(text) == (shown, 1)
    assert filtered(*text) == (shown, 1)


def test_a_word_without_an_end_is_not_waited_for() -> None:
    references = ReferenceFilter(KNOWN)
    shown = [*references.filter(["ab"] * MAX_WORD)]
    assert "".join(shown) == "ab" * MAX_WORD
    assert max(map(len, shown)) <= MAX_WORD + len("ab")


def test_words_pass_as_soon_as_they_are_whole_and_all_of_them_before_a_failure() -> None:
    seen: list[str] = []

    def said() -> Iterator[str]:
        yield "It waits an"
        assert seen == ["It waits "]
        yield "d "
        assert seen == ["It waits ", "and "]
        yield "en"
        raise EndpointError("broke off")

    def read() -> None:
        for text in ReferenceFilter(KNOWN).filter(said()):
            seen.append(text)

    with pytest.raises(EndpointError):
        read()
    assert "".join(seen) == "It waits and en"

"""Every regular expression takes linear time on hostile text."""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mail_assets.mail.body.lines import Segment
from mail_assets.mail.body.quotes import find_mail_head
from mail_assets.mail.body.segments import quote_mail_below
from mail_assets.mail.message.text_addresses import find_addresses
from mail_assets_tests.patterns import Attack, Use, attacks, find_patterns

#: Lengths of the first texts: in small steps, for patterns whose time doubles with each character.
SHORT = (8, 12, 16, 20, 24, 28)
LONG = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
#: Lengths for functions, which also work between their patterns.
LONGER = (64, 512, 4096, 16384)

#: First sizes of every attack. Most attacks take no measurable time at these sizes.
GATES = (SHORT[3], SHORT[-1], 1024, 2048)

#: Seconds after which no longer text is tried.
ENOUGH = 0.1

#: Seconds below which a time is mostly noise.
NOISE = 0.0005

#: A text four times as long takes a linear pattern 4 times as long, a quadratic one 16 times.
TOO_STEEP = 8.0

#: A text eight times as long takes a linear pattern 8 times as long, a quadratic one 64 times. The
#: best of several alternating tries has less noise on a busy machine.
TOO_STEEP_AT_EIGHT, TRIES = 24.0, 8

#: Four more characters take 16 times as long if a pattern tries every way to split a text.
EXPLOSIVE = 8.0


@pytest.fixture(scope="module")
def uses() -> list[Use]:
    """The patterns of the package, after all its modules were imported."""
    return find_patterns()


def seconds(use: Use, attack: Attack, size: int, tries: int = 3) -> float:
    """Return the processor time of an attack of about `size` characters, the best of `tries`."""
    pattern: re.Pattern[Any] = use.pattern
    text: Any = attack.text(size)
    if isinstance(pattern.pattern, bytes):
        text = text.encode("latin-1", "replace")
    best = float("inf")
    for _ in range(tries):
        began = time.process_time()
        if use.searches:
            for _match in pattern.finditer(text):
                pass
        else:
            pattern.match(text)
            pattern.fullmatch(text)
        best = min(best, time.process_time() - began)
        if best < NOISE or best > ENOUGH:
            break
    return best


def is_linear(use: Use, attack: Attack) -> bool:
    """Return True if an attack takes linear time.

    A few texts suffice for a linear pattern: they take no measurable time, or a text four times as
    long takes about four times as long.
    """
    shorter, short, *longer = GATES
    suspect = seconds(use, attack, shorter) > NOISE or seconds(use, attack, short) > NOISE
    if suspect and any(took > EXPLOSIVE * before for before, took in times(use, attack, SHORT)):
        return False
    for long in longer:
        took = seconds(use, attack, long, tries=1)
        if took <= NOISE or took <= TOO_STEEP * seconds(use, attack, long // 4):
            return True
    return not is_steep(use, attack, LONG)


def times(use: Use, attack: Attack, sizes: tuple[int, ...]) -> Iterator[tuple[float, float]]:
    """Yield the times of neighbouring sizes, if the smaller one is more than noise."""
    before = 0.0
    for size in sizes:
        took = seconds(use, attack, size)
        if before > NOISE:
            yield before, took
        before = took


def is_steep(use: Use, attack: Attack, sizes: tuple[int, ...]) -> bool:
    """Return True if a text eight times as long takes far more than eight times as long.

    The texts are long, because a bounded repetition is steep only up to its bound.
    """
    for long in sizes:
        eightfold = seconds(use, attack, long, tries=1)
        if eightfold > ENOUGH:
            break
    short = float("inf")
    for _ in range(TRIES):
        short = min(short, seconds(use, attack, max(long // 8, SHORT[0]), tries=1))
        if eightfold <= TOO_STEEP_AT_EIGHT * short:
            return False
        eightfold = min(eightfold, seconds(use, attack, long, tries=1))
    return True


def test_the_attacks_find_what_is_known_to_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    # on a fast machine all times are short; noise makes nothing look faster
    monkeypatch.setitem(globals(), "NOISE", NOISE / 10)
    slow = (r"(a+)+$", r"\s+$", r"^(.*)x(.*)y$", r"<.*>", r"[ \t]*\n", r"(?:a|a)*b", r"a.*b.*c")
    for pattern in slow:
        use = Use("slow", re.compile(pattern), searches=True)
        assert not all(is_linear(use, attack) for attack in attacks(use.pattern)), pattern


def test_every_pattern_of_the_package_is_found(uses: list[Use]) -> None:
    assert len(uses) > 100
    assert {use.searches for use in uses} == {True, False}


def test_every_pattern_takes_linear_time(uses: list[Use]) -> None:
    steep = {}
    for use in uses:
        for attack in attacks(use.pattern):
            if not is_linear(use, attack):
                steep[use.place, use.pattern.pattern] = attack
                break
    assert steep == {}


#: Pieces of addresses, plain and disguised, and of the text around them.
PIECES = (
    "\ufe0f", "a", "a\ufe0f", "a.", "a_", " ", "(", "< ", '"', '"a', "|", "-", ">", ".", "%20",
    "&lt;", " dot", "_dot", "\n> ", "\u00ad.", "=40", "mailto:", "<a en ", "www.",
)  # fmt: skip
AT_SIGNS = ("", "@", "%40", "&#64;", "(a)", " at ", "[a]", "/at/", " arroba ", " en ", "\uff20")


def use_of(find: Callable[[str], Iterable[object]]) -> Use:
    """Return a search function as a Use, to be attacked like a pattern."""
    finder = cast("re.Pattern[str]", SimpleNamespace(pattern="", finditer=find))
    return Use("a function", finder, searches=True)


@pytest.mark.parametrize("unit", ["a:\nb:\nc:\n\n", "*a:b\n\t", "\n\n"])
def test_head_of_mail_is_found_in_linear_time(unit: str) -> None:
    use = use_of(lambda text: [find_mail_head(text, has_above=True)])
    assert not is_steep(use, Attack("", unit, ""), LONGER)


def test_mail_below_many_headings_is_found_in_linear_time() -> None:
    def find(text: str) -> list[Segment]:
        kinds = ("text", "attribution")
        parts = [Segment(i, i + 1, kinds[i % 2]) for i in range(len(text))]
        return [*quote_mail_below(text, parts)]

    assert not is_steep(use_of(find), Attack("", "\n", ""), LONGER)


@pytest.mark.parametrize("sign", AT_SIGNS)
def test_addresses_are_found_in_linear_time(sign: str) -> None:
    # their patterns are compiled at first use, so the test above does not find them
    use = use_of(find_addresses)
    attacks_of_it = {
        attack
        for piece in PIECES
        for attack in (
            Attack("", piece, sign),
            Attack(sign, piece, ""),
            Attack("", piece + sign, ""),
            Attack("", sign + 250 * piece, ""),
            Attack("\n|", piece, sign + "a.org"),
            Attack("\njo en a.org", piece, sign),
        )
    }
    assert [attack for attack in attacks_of_it if is_steep(use, attack, LONGER)] == []

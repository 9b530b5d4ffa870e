"""Regular expressions: none takes more than linear time, whatever the text."""

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

#: Characters of the texts: every few at first, for what doubles its time with each of them.
SHORT = (8, 12, 16, 20, 24, 28)
LONG = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
#: Of functions, which take steps between their patterns.
LONGER = (64, 512, 4096, 16384)

#: Sizes at which every attack is tried first. Most take no more than noise at all of them.
GATES = (SHORT[3], SHORT[-1], 1024, 2048)

#: Seconds after which nothing longer is tried.
ENOUGH = 0.1

#: Seconds below which a time is mostly the clock's.
NOISE = 0.0005

#: Four times the text takes 4 times the time of a linear pattern, 16 times that of a quadratic one.
TOO_STEEP = 8.0

#: Eight times the text takes 8 times the time of a linear pattern, 64 times that of a quadratic
#: one. The best of several tries of both, turn by turn, is off by less on a busy machine.
TOO_STEEP_AT_EIGHT, TRIES = 24.0, 8

#: Four characters more take sixteen times the time of a pattern that tries every way to split.
EXPLOSIVE = 8.0


@pytest.fixture(scope="module")
def uses() -> list[Use]:
    """The patterns of the package: all its modules are imported, once tests are collected."""
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
    """Return whether an attack is neither explosive nor steep.

    A linear pattern is known after few texts: it takes no more than noise, or four times the text
    takes about four times the time.
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
    """Yield the times of each two sizes in a row, where the smaller is more than noise."""
    before = 0.0
    for size in sizes:
        took = seconds(use, attack, size)
        if before > NOISE:
            yield before, took
        before = took


def is_steep(use: Use, attack: Attack, sizes: tuple[int, ...]) -> bool:
    """Return whether eight times the text takes far more than eight times the time.

    A bounded repetition is steep up to its bound, and then no more: the texts are long.
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
    # on a fast machine all times are short: what noise adds makes nothing look quicker
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


#: Pieces of addresses, plain and disguised, and of what stands around them.
PIECES = (
    "\ufe0f", "a", "a\ufe0f", "a.", "a_", " ", "(", "< ", '"', '"a', "|", "-", ">", ".", "%20",
    "&lt;", " dot", "_dot", "\n> ", "\u00ad.", "=40", "mailto:", "<a en ", "www.",
)  # fmt: skip
AT_SIGNS = ("", "@", "%40", "&#64;", "(a)", " at ", "[a]", "/at/", " arroba ", " en ", "\uff20")


def use_of(find: Callable[[str], Iterable[object]]) -> Use:
    """Return a function that looks for something in a text, to be attacked like a pattern."""
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
    # their patterns are tried within bounds, and compiled at first use: not by themselves above
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

"""Names that look the same are found."""

import pytest

from mail_assets.text.lookalikes import find_lookalikes

ALICE = "Alice Archer"


@pytest.mark.parametrize("other", [
    ALICE, "ALICE  ARCHER", "Archer, Alice", "\u0410lice Archer", "Alice\u200b Archer",
    "A\u200dlice Arch\u202eer", "AIice Archer", "Al1ce Archer", "Alice Arc\u04bber",
    "\u0391lice Archer", "Alic\u00e9 Archer", "\uff21lice Archer", '"Alice Archer"',
    "Alice Archer <a@x.org>", "Alice Archer (k3x9)", "Alice Archer [k3x9]", "a@x.org Alice Archer",
])  # fmt: skip
def test_name_that_looks_like_another_is_found(other: str) -> None:
    people = [(ALICE, "a@x.org"), (other, "m@y.org"), ("Bob Baker", "b@x.org")]
    assert find_lookalikes(people) == {ALICE, other}


def test_letters_that_look_like_one_are_found() -> None:
    people = [("Sam Webb", "a@x.org"), ("Sarn VVebb", "m@y.org")]
    assert find_lookalikes(people) == {"Sam Webb", "Sarn VVebb"}


@pytest.mark.parametrize("name", ["Alice Archer <a@x.org>", "Alice Archer (k3x9)", "a@x.org"])
def test_name_that_imitates_a_mark_is_found_alone(name: str) -> None:
    assert find_lookalikes([(name, "m@y.org"), ("Bob Baker", "b@x.org")]) == {name}


@pytest.mark.parametrize("people", [
    [("a@x.org", "a@x.org"), ("Alice Archer (Acme)", "m@y.org")],
    [(ALICE, "a@x.org"), (ALICE, "a@x.org")],
    [(ALICE, "a@x.org"), ("Alice Baker", "b@x.org")],
    [("\u6797\u7530", "a@x.org"), ("\u6797\u7530 \u7531\u7d00", "b@x.org")],
    [("", "a@x.org"), ("", "b@x.org"), ("\u2022\u2022", "c@x.org")],
])  # fmt: skip
def test_other_names_are_not_found(people: list[tuple[str, str]]) -> None:
    assert find_lookalikes(people) == set()

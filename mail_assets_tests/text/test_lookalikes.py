"""Names that look the same are found."""

import pytest

from mail_assets.text.lookalikes import find_lookalikes

ALICE = "Alice Archer"


@pytest.mark.parametrize("other", [
    ALICE, "ALICE  ARCHER", "Archer, Alice", "\u0410lice Archer", "Alice\u200b Archer",
    "A\u200dlice Arch\u202eer", "AIice Archer", "Al1ce Archer", "Alice Arc\u04bber",
    "\u0391lice Archer", "Alic\u00e9 Archer", "\uff21lice Archer", '"Alice Archer"',
])  # fmt: skip
def test_name_that_looks_like_another_is_found(other: str) -> None:
    people = [(ALICE, "a@x.org"), (other, "m@y.org"), ("Bob Baker", "b@x.org")]
    assert find_lookalikes(people) == {ALICE, other}


@pytest.mark.parametrize("people", [
    [(ALICE, "a@x.org"), (ALICE, "a@x.org")],
    [(ALICE, "a@x.org"), ("Alice Baker", "b@x.org")],
    [("\u6797\u7530", "a@x.org"), ("\u6797\u7530 \u7531\u7d00", "b@x.org")],
    [("", "a@x.org"), ("", "b@x.org"), ("\u2022\u2022", "c@x.org")],
])  # fmt: skip
def test_other_names_are_not_found(people: list[tuple[str, str]]) -> None:
    assert find_lookalikes(people) == set()

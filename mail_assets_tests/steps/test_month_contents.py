"""The number of different messages under one Message-ID is limited."""

import pytest

from mail_assets.mail.message.forgotten import Forgotten
from mail_assets.steps import month_contents
from mail_assets.steps.month_contents import MAX_VARIANT, MessageOutcome, decide_outcomes
from mail_assets.steps.read_month import Facts
from mail_assets_tests.world import World, mail


def facts(content: str) -> Facts:
    return Facts("always@example.org", content, b"", None)


def test_variants_beyond_the_limit_are_quarantined() -> None:
    contents = [facts(str(number)) for number in range(MAX_VARIANT + 3)]
    outcomes = decide_outcomes([*contents, contents[0]], frozenset(), Forgotten())
    assert outcomes[MAX_VARIANT] == MessageOutcome("stored", MAX_VARIANT)
    assert {one.kind for one in outcomes[MAX_VARIANT + 1 : -1]} == {"quarantined"}
    assert (
        outcomes[-2].reason == "more than 32768 different messages of the month have its Message-ID"
    )
    assert outcomes[-1] == MessageOutcome("duplicate", 0)


def test_month_is_stored_without_variants_beyond_the_limit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(month_contents, "MAX_VARIANT", 1)
    world.archive("2024-03", *(mail("always", f"This is content {x}.") for x in "abca"))
    world.archives()
    counts = world.messages().counts
    assert (counts["found"], counts["stored"], counts["duplicates"]) == (4, 2, 1)
    assert [ordinal for ordinal, _ in world.rows("quarantine", "ordinal, reason")] == [2]
    assert world.rows("archive_entries", "ordinal, outcome, variant") == [
        (0, "stored", 0),
        (1, "stored", 1),
        (2, "quarantined", None),
        (3, "duplicate", 0),
    ]
    assert world.messages().counts["written"] == 0

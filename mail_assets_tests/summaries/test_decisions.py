"""Decisions: stated, or hedged, denied, asked, planned, tried and told of others."""

import pytest

from mail_assets.summaries.extractive import is_decision

STATED = (
    "Applied, thanks.",
    "Applied.",
    "Thanks, applied!",
    "Patch applied :)",
    "Patch applied (with the sign-off).",
    "Both patches applied.",
    "Committed to CVS.",
    "Fixed in release 2.3.",
    "Pushed to the main branch.",
    "I've applied the patch.",
    "I have just pushed this.",
    "I applied it, with a minor tweak.",
    "So I reverted it.",
    "Sam has committed the fix.",
    "This has been fixed.",
    "The second patch was rejected.",
    "For now, the patch is applied.",
    "Yes, it was withdrawn.",
    "The proposal has been postponed.",
    "The patch is now superseded by the next version.",
    "We agreed to keep the valve.",
    "The working group decided not to change it.",
    "The committee has approved the text.",
    "I withdraw the suggestion.",
    "The issue was marked as resolved.",
)
NOT_STATED = (
    "Not yet committed.",
    "The patch has not been applied.",
    "This hasn't been fixed.",
    "I would have applied it.",
    "I'll apply it tomorrow.",
    "If the patch is applied, the pump stops.",
    "Once this is committed, we can go on.",
    "It should be fixed.",
    "Could this be applied?",
    "Was it committed?",
    "Has the patch been applied?",
    "Please apply the patch.",
    "I think this was fixed.",
    "Maybe it was reverted.",
    "I hope it is merged soon.",
    "I noticed none of these were accepted.",
    "No patch was applied.",
    "He said it was committed.",
    'The text says "patch applied" twice.',
    "I applied the patch locally.",
    "I applied the patch on my machine.",
    "I applied the patch and it crashed.",
    "I installed the pump and removed the old one.",
    "I decided to use images.",
    "Agreed.",
    "The other queries that were committed are slow.",
    "It is a feature since it was merged.",
    "Applied mathematics is hard.",
    "Fixed width columns are better.",
    "deferred.errback(timeout)",
    "A pump that has been removed leaks no more.",
    "",
)


@pytest.mark.parametrize("text", STATED)
def test_a_decision_that_is_stated_is_found(text: str) -> None:
    assert is_decision(text)


@pytest.mark.parametrize("text", NOT_STATED)
def test_what_states_no_decision_is_none(text: str) -> None:
    assert not is_decision(text)


def test_line_ends_within_a_sentence_make_no_difference() -> None:
    assert is_decision("I have just\napplied this.")
    assert not is_decision("I have\nnot applied this.")

"""Records of decisions: stating sentences, people with standing, and empty fields."""

import datetime as dt
from dataclasses import replace
from typing import Literal

import pytest

from mail_assets.summaries.acts import Act, read_act
from mail_assets.summaries.decisions import (
    DecidedCommit,
    Said,
    Standing,
    find_statements,
    quote_statement,
    read_record,
)
from mail_assets.summaries.summary import MessageText, Statement
from mail_assets_tests.summaries.threads import START, write_message

ASKED = write_message(0, "The valve of the north pier leaks. Could somebody replace it?\n")
PATCH = """The valve opens at a lower pressure.

--- a/pump.c
+++ b/pump.c
@@ -1 +1 @@
-int low = 4;
+int low = 3;
"""
POSTED = replace(write_message(0, PATCH), subject="[PATCH] A pump for the harbor")


def outcomes(*messages: MessageText) -> list[str]:
    found = find_statements(messages)
    bodies = {one.message_id: one.body for one in messages}
    assert all(bodies[x.message_id][x.start : x.end] == x.text for x in found)
    return [one.outcome for one in found if one.part == "decision"]


def answer(body: str, author: str = "Sam Poe", number: int = 1) -> MessageText:
    return write_message(number, body, author, 0)


STATED = {
    "Applied, thanks.": "applied",
    "I've applied the following patch:": "applied",
    "I just committed r4321, which does that.": "applied",
    "Thanks for the report, fixed in SVN.": "fixed",
    "This is fixed in CVS now.": "fixed",
    "Done (in trunk).": "fixed",
    "I have reverted this patch, for two reasons:": "reverted",
    "Sorry, no; I've removed the patch.": "reverted",
    "Backed out.": "reverted",
    "I'm not going to apply this patch.": "rejected",
    "I am rejecting this proposal.": "rejected",
    "Closing this ticket as wontfix.": "closed",
    "Added to TODO:": "noted",
    "I have added this to the TODO list.": "noted",
    "The consensus is to keep the valve.": "agreed",
    "We have agreed to keep the old valve.": "agreed",
    "The committee has decided to keep it.": "decided",
    "PEP 9001 is accepted.": "decided",
    "The vote passed.": "decided",
    "Decision: the valve stays.": "decided",
    "Angewendet, danke.": "applied",
    "Der Patch ist eingespielt.": "applied",
    "Appliqué, merci !": "applied",
    "Aplicado, gracias.": "applied",
    "Aplicado, obrigado.": "applied",
    "Применил, спасибо.": "applied",
    "適用しました。ありがとうございます。": "applied",
    "已合并，谢谢。": "applied",
    "Abgelehnt.": "rejected",
    "Ich habe den Patch wieder zurückgenommen.": "reverted",
    "Откатил.": "reverted",
    "Anyway, since it does seem broken, I've just reverted this from my tree.": "reverted",
    "已回退。": "reverted",
}
NOTHING_STATED = (
    "Shall I apply this?", "I propose that we drop the valve.",
    "If nobody objects I'll commit this tomorrow.", "I think we should keep it.",
    "We could close this ticket as wontfix.", "+1",
    "+1 from me, it is fixed in CVS on my side I think.", "I have fixed many things in it for 6.4.",
    "This is fixed easily enough.", "This was fixed in CVS a couple of weeks ago.",
    "It will be fixed in SVN.", "It's not fixed in SVN yet.", "Fixed in SVN, I hope.",
    "Sure, we decided to drop it, yeah right.", "Decision: we drop it ;-)",
    'He wrote "Decision: we drop it".', "I applied the patch locally.",
    "I applied the patch to my 5.14 kernel and it crashed.",
    "I've applied the patch (or rather the script), but won't push it yet.",
    "I reverted the patch and it works again.",
    "Since it broke, I guess I reverted this.",
    "I removed this change, since I guessed it was a mistake.",
    "I already applied a different patch recently.",
    "I have reverted the changes to the valve for the next spin.",
    "I applied the patch to those pages by accident.",
    "This has been fixed in SVN HEAD. Perhaps it is the cause.", "I pushed the button.",
    "Your mail client has decided that you answer another thread.",
    "The closed() method is called when both sides are closed.",
    "Yes, I know we agreed to the lock, but it has to be looked at again.",
    "Applied mathematics is hard.", "No objections so far.", "Nobody has objected.",
    "Ich würde ihn zurücknehmen.", "Wird angewendet, wenn niemand widerspricht.", "",
)  # fmt: skip


@pytest.mark.parametrize(("text", "outcome"), STATED.items())
def test_stated_decision_is_recorded(text: str, outcome: str) -> None:
    assert outcomes(ASKED, answer(f"{text}\n")) == [outcome]


@pytest.mark.parametrize("text", NOTHING_STATED)
def test_sentence_without_a_decision_is_left_out(text: str) -> None:
    assert outcomes(ASKED, answer(f"{text}\n")) == []


DROP = "Decision: we drop the valve."
POINTS = """- The old valve stays, because nobody
  has a new one.

- The pipe is welded.
"""


@pytest.mark.parametrize(("lead", "outcome"), [
    ("We decided:", "decided"),
    ("We decided on the following:", "decided"),
    ("To sum up, we agreed upon these points:", "agreed"),
    ("It was decided at last:", None),
    ("It was agreed:", "decided"),
    ("The committee decided as follows:", "decided"),
    ("Decisions:", "decided"),
    ("Here is what we agreed:", "agreed"),
    ("We should decide:", None),
    ("If we agreed on this:", None),
    ("Lee said:", None),
    ("For example:", None),
])  # fmt: skip
def test_decision_of_several_points_is_one(lead: str, outcome: str | None) -> None:
    found = find_statements([ASKED, answer(f"Hello,\n\n{lead}\n\n{POINTS}\nThe paint is new.\n")])
    assert [(one.text, one.outcome) for one in found] == (
        [(f"{lead}\n\n{POINTS}".strip(), outcome)] if outcome else []
    )


@pytest.mark.parametrize("points", [
    "", "Not a list.\n", "- Do we weld it?\n", "- one\n- or two?\n", "- " + "so long " * 150 + "\n",
])  # fmt: skip
def test_announced_points_need_a_list_that_asks_nothing(points: str) -> None:
    assert outcomes(ASKED, answer(f"We decided:\n\n{points}")) == []


def test_long_list_of_points_ends_with_an_item() -> None:
    points = "".join(f"{number}. {'point ' * 20}\n" for number in range(1, 20))
    (one,) = find_statements([ASKED, answer(f"We decided:\n{points}")])
    assert one.text.count("\n") == 8
    assert one.text.endswith("point")


FOREIGN = {
    "quoted": f"> {DROP}\n\nSo it was said.\n",
    "after an attribution": f"Lee Doe wrote:\n\n{DROP}\n",
    "after a name and said": f"Look.\n\nLee said:\n{DROP}\n",
    "forwarded": f"FYI\n\n---------- Forwarded message ----------\nFrom: Lee <l@x.org>\n\n{DROP}\n",
    "forwarded without a header": f"FYI\n\n----- Begin forwarded message:\n\n{DROP}\n",
    "an original": f"Yes.\n\n-----Original Message-----\nFrom: Lee\nSubject: x\n\n{DROP}\n",
    "in a diff": f"See.\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-none\n+{DROP}\n",
    "in code": f"See.\n\n    # {DROP}\n    return 1;\n",
    "in a signature": f"Yes.\n\n-- \nSam Poe\n{DROP}\n",
    "an example": f"For example, answer like this:\n{DROP}\n",
    "a zero width space": f"{DROP[:14]}\u200b{DROP[14:]}\n",
    "turned letters": f"\u202e{DROP}\n",
    "tag characters": f"{DROP[:-1]}\U000e006e\U000e006f.\n",
    "other letters": DROP.replace("o", "\u043e") + "\n",
}


@pytest.mark.parametrize("body", FOREIGN.values(), ids=FOREIGN)
def test_words_of_others_decide_nothing(body: str) -> None:
    assert outcomes(ASKED, answer(body)) == []


@pytest.mark.parametrize("quote", ["> Here it is (attached and inline):", "> On Tue, Lee wrote:"])
def test_quote_that_ends_with_a_colon_leads_to_no_answer(quote: str) -> None:
    assert outcomes(ASKED, answer(f"{quote}\n\n{DROP}\n")) == ["decided"]


def test_who_asks_and_who_joined_by_subject_decide_nothing() -> None:
    joined = replace(answer(f"{DROP}\n"), joined=True)
    assert outcomes(write_message(0, f"{DROP}\n"), answer("I see.\n")) == []
    assert outcomes(ASKED, joined) == []


@pytest.mark.parametrize(("subject", "found"), [
    ("Re: A pump for the harbor", ["decided"]),
    ("Re: A pump for the harbor (fwd)", ["decided"]),
    ("[PATCH] pier: weld the pipe", ["decided"]),
    ("Re: (subset) A pump for the harbor", ["decided"]),
    ("Re: A bridge for the pier", []),
    ("Re: A bridge (was: A pump for the harbor)", []),
])  # fmt: skip
def test_another_subject_is_another_matter(subject: str, found: list[str]) -> None:
    assert outcomes(ASKED, replace(answer(f"{DROP}\n"), subject=subject)) == found


@pytest.mark.parametrize(("text", "author", "found"), [
    ("Applied.", "Jo Roe", []),
    ("Applied to the next branch:", "Jo Roe", ["applied"]),
    ("Pushed to master.", "Jo Roe", ["applied"]),
    ("Also pushed to:", "Jo Roe", []),
    ("Pushed to my own branch.", "Jo Roe", []),
    ("Applied.", "Sam Poe", ["applied"]),
    ("Please ignore this patch.", "Jo Roe", ["withdrawn"]),
    ("Please ignore this patch.", "Sam Poe", []),
    ("Rejected.", "Sam Poe", ["rejected"]),
    ("Rejected.", "Jo Roe", []),
    ("I've applied the 2 patches.", "Sam Poe", ["applied"]),
    ("I've applied the 2 patches from Ann and yours.", "Sam Poe", []),
])  # fmt: skip
def test_authors_decide_other_things_than_others(text: str, author: str, found: list[str]) -> None:
    assert outcomes(POSTED, answer(f"{text}\n", author)) == found


def test_who_suggests_a_diff_withdraws_no_patch() -> None:
    suggested = replace(answer(f"Rather so.\n{PATCH}"), subject=f"Re: {POSTED.subject}")
    later = answer("Drop this patch, and change the next one.\n", number=2)
    assert outcomes(POSTED, suggested, later) == []


def test_who_asks_to_pull_pushes_for_that() -> None:
    subject = "[GIT PULL] Fixes for the pier"
    first = replace(POSTED, subject=subject)
    pushed = replace(answer("Yes, sorry, now pushed.\n", "Jo Roe"), subject=f"Re: {subject}")
    assert outcomes(first, pushed) == []
    assert outcomes(first, replace(pushed, author="Sam Poe", sender="sam@x")) == ["applied"]


def test_queue_is_no_decision_where_nobody_posted_the_patch() -> None:
    first = replace(write_message(0, "Please check the size.\n"), subject=f"Re: {POSTED.subject}")
    assert outcomes(first, answer("Good catch. Queued to -next.\n")) == []
    assert outcomes(POSTED, answer("Queued for 6.2, thanks.\n")) == ["applied"]


NOTICES = {
    "  Status|NEW                         |RESOLVED\n  Resolution|---       |FIXED\n": ["closed"],
    "  Status|RESOLVED    |REOPENED\n": ["reopened"],
    "Closed #12 as completed.\n": ["closed"],
    "Merged #12 into main.\n": ["applied"],
    " * status:  new => closed\n * resolution:  => fixed\n": ["closed"],
    "I have fixed this in SVN.\n": [],
}


@pytest.mark.parametrize(("body", "found"), NOTICES.items())
def test_programs_state_what_they_changed(body: str, found: list[str]) -> None:
    sent = replace(answer(body), sender="bugzilla-daemon@bugs.example.org")
    assert outcomes(ASKED, sent) == found


def test_alternatives_are_those_above_the_decision() -> None:
    other = answer("Another option is to weld the pipe.\n", "Lee Doe")
    aside = write_message(2, "Alternatively, sell the pier.\n", "Max Moe", 0)
    applied = write_message(3, "Applied, thanks.\n", "Sam Poe", 1)
    found = find_statements([ASKED, other, aside, applied])
    assert [(one.part, one.text) for one in found] == [
        ("alternative", "Another option is to weld the pipe."),
        ("decision", "Applied, thanks."),
    ]
    assert find_statements([ASKED, other, aside]) == ()


def said(
    outcome: str, hour: int, author: str = "Sam Poe", standing: Standing = "", firm: bool = True
) -> Said:
    part: Literal["decision", "alternative"] = "decision" if outcome else "alternative"
    about = Statement(f"m{hour}@example.org", 0, 4, "text", part, outcome, firm)
    return Said(about, author, "", START + dt.timedelta(hours=hour), standing)


def test_last_decision_is_the_record() -> None:
    record = read_record([said("", 0), said("applied", 1), said("", 2), said("closed", 3)])
    assert record.decided == said("closed", 3)
    assert record.earlier == (said("applied", 1),)
    assert record.alternatives == (said("", 0), said("", 2))
    assert record.superseded_by is None


def test_decision_that_was_taken_back_says_so() -> None:
    record = read_record([said("applied", 1), said("reverted", 2)])
    assert (record.decided, record.superseded_by) == (said("applied", 1), said("reverted", 2))
    again = read_record([said("applied", 1), said("reverted", 2), said("applied", 3)])
    assert (again.decided, again.superseded_by) == (said("applied", 3), None)
    alone = read_record([said("reverted", 2)])
    assert (alone.decided, alone.superseded_by) == (said("reverted", 2), None)


@pytest.mark.parametrize("outcome", ["decided", "reverted", "rejected"])
def test_stranger_overrules_nobody_known_to_decide(outcome: str) -> None:
    applied = said("applied", 1, standing="committer")
    record = read_record([applied, said(outcome, 2, "Stranger")])
    assert (record.decided, record.superseded_by, record.earlier) == (applied, None, ())


def test_stranger_alone_only_said_so() -> None:
    record = read_record([said("decided", 2, "Stranger")])
    assert record.decided
    assert (record.decided.from_name, record.decided.standing) == ("Stranger", "")


def test_what_is_not_firm_needs_a_committer() -> None:
    assert read_record([said("decided", 1, firm=False)]).decided is None
    known = said("decided", 1, standing="committer", firm=False)
    assert read_record([known]).decided == known
    assert read_act("We decided to move to another tool.") == Act("decided", firm=False)


def test_withdrawal_gives_way_to_what_comes_later() -> None:
    record = read_record([said("withdrawn", 1, standing="author"), said("applied", 2)])
    assert record.decided == said("applied", 2)


def test_commit_alone_is_a_record() -> None:
    commit = DecidedCommit("a" * 40, "pump", "Lower the pressure", "Sam Poe", START)
    assert read_record([], [commit]).commits == (commit,)


@pytest.mark.parametrize(("quotation", "found"), [
    ("We keep the old valve.", True),
    ("We keep the old\nvalve", True),
    ("We keep the new valve.", False),
    ("If it leaks, we drop it.", False),
    ("Do we drop it?", False),
])  # fmt: skip
def test_quotation_is_a_sentence_of_its_message(quotation: str, found: bool) -> None:
    message = answer("We keep the old valve. If it leaks, we drop it. Do we drop it?\n")
    stated = quote_statement([ASKED, message], message, quotation, "decided")
    assert (stated is not None) == found

"""Extractive summaries: properties of all of them, decisions, reactions."""

import sys
from dataclasses import replace

import pytest

from mail_assets.summaries.acts import is_decision
from mail_assets.summaries.extractive import (
    MAX_SENTENCES,
    count_reactions,
    count_sentences,
    find_candidates,
    summarize,
)
from mail_assets.summaries.summary import MessageText
from mail_assets_tests.summaries.threads import START, write_message

QUESTION = """Hello all,

The pump at the north pier stops whenever the tide is above four meters. I propose that we
replace the valve by one that opens at a lower pressure.

    int pump_pressure(int tide) { return tide * 2; }

Regards,
Jo Roe
"""
ANSWER = """On Friday, Jo Roe wrote:
> The pump at the north pier stops whenever the tide is above four meters. I propose that we
> replace the valve by one that opens at a lower pressure.

A lower pressure would also open the valve in a storm, so a second sensor is needed.

--
Sam Poe
"""
OUTCOME = """Jo Roe wrote:
> A lower pressure would also open the valve in a storm, so a second sensor is needed.

Applied, with the second sensor. Thanks!
"""
THREAD = [
    write_message(0, QUESTION),
    write_message(1, ANSWER, "Sam Poe", 0),
    write_message(2, OUTCOME, "Lee Doe", 1),
]


def test_every_sentence_stands_where_it_says() -> None:
    bodies = {message.message_id: message.body for message in THREAD}
    sentences = summarize(THREAD).sentences
    assert sentences
    for one in sentences:
        assert bodies[one.message_id][one.start : one.end] == one.text


def test_thread_has_a_question_a_discussion_and_an_outcome() -> None:
    parts = {one.part: one.text for one in summarize(THREAD).sentences}
    assert parts["outcome"] == "Applied, with the second sensor."
    assert parts["discussion"].startswith("A lower pressure")
    assert parts["question"].startswith("I propose")


def test_people_dates_and_patches_are_those_of_all_messages() -> None:
    diff = "Here it is at last, as we said.\n\n--- a/pump.c\n+++ b/pump.c\n@@ -1 +1 @@\n-a\n+b\n"
    summary = summarize([*THREAD, write_message(3, diff, "Jo Roe", 2)])
    assert summary.participants == ("Jo Roe", "Sam Poe", "Lee Doe")
    assert (summary.first_at, (summary.last_at - START).total_seconds()) == (START, 3 * 3600)
    assert summary.patches == ("m3@example.org",)


ROBOT = """Dear submitter,

This is a message that a program sends whenever somebody posts a patch to this list.
The test of the pump at the north pier passed in 31 seconds.

This patch was applied to pump/pump.git by Sam Poe.
"""


@pytest.mark.parametrize(("sender", "body"), [
    ("pump.test.bot@example.org", ROBOT),
    ("patchwork-bot+pier@example.org", ROBOT),
    ("syzbot+1f2e@example.org", ROBOT),
    ("lkp@example.org", ROBOT),
    ("ci@example.org", f"This is automated email and please do not reply!\n\n{ROBOT}"),
    ("ci@example.org", f"[This is an automatically generated e-mail.]\n\n{ROBOT}"),
])  # fmt: skip
def test_answer_of_a_program_has_no_sentence_but_an_outcome(sender: str, body: str) -> None:
    asked = write_message(0, QUESTION)
    answered = replace(write_message(1, body, sender, 0), sender=sender)
    taken = [one.text for one in summarize([asked, answered]).sentences]
    assert "This patch was applied to pump/pump.git by Sam Poe." in taken
    assert not any("program" in one or "passed" in one for one in taken)


@pytest.mark.parametrize(
    ("number", "sender"), [(0, "syzbot+1f2e@example.org"), (1, "ann.talbot@example.org")]
)
def test_reports_of_programs_and_answers_of_people_are_read(number: int, sender: str) -> None:
    thread = [write_message(0, QUESTION), write_message(1, QUESTION)]
    thread[number] = replace(thread[number], body=ROBOT, sender=sender)
    assert any("program" in one.text for one in find_candidates(thread))


def test_thread_without_text_has_no_sentences() -> None:
    assert summarize([write_message(0, "")]).sentences == ()


def test_thread_without_messages_is_refused() -> None:
    with pytest.raises(ValueError, match="without an archived message"):
        summarize([])


def test_same_thread_has_the_same_summary() -> None:
    assert summarize(THREAD) == summarize(THREAD)


def test_nothing_but_new_text_is_taken() -> None:
    taken = "\n".join(one.text for one in summarize(THREAD).sentences)
    foreign = ("int pump_pressure", "> The pump", "wrote:", "Regards", "Hello", "Jo Roe", "--")
    assert not [text for text in foreign if text in taken]


@pytest.mark.parametrize("body", [
    "> It is needed.\n\nIf the patch is applied, the pump stops. It is not yet committed.\n",
    "> Applied, with the second sensor.\n\nIt was about time!\n",
], ids=["hedged", "quoted"])  # fmt: skip
def test_without_a_stated_outcome_none_is_claimed(body: str) -> None:
    thread = [*THREAD[:2], write_message(2, body, "Lee Doe", 1)]
    assert "outcome" not in {one.part for one in summarize(thread).sentences}


def test_latest_decision_is_the_outcome() -> None:
    reverted = write_message(3, "I have reverted this, the sensor was the wrong one.", "Lee Doe", 2)
    outcomes = [
        one.text for one in summarize([*THREAD, reverted]).sentences if one.part == "outcome"
    ]
    assert outcomes[-1].startswith("I have reverted")


def test_question_follows_a_bare_patch_of_the_same_author() -> None:
    diff = "--- a/pump.c\n+++ b/pump.c\n@@ -1 +1 @@\n-a\n+b\n"
    again = "The pressure is read before the pump has started. Read it afterwards.\n\n" + diff
    thread = [
        write_message(0, diff),
        write_message(1, again, parent=0),
        write_message(2, "It looks right to me, and I have tried it.", "Sam Poe", 1),
    ]
    (question, *_) = summarize(thread).sentences
    assert (question.message_id, question.part) == ("m1@example.org", "question")
    assert [one.part for one in summarize([thread[0], thread[2]]).sentences] == ["discussion"]


def test_repeated_text_of_patch_versions_is_taken_once() -> None:
    same = "The pressure is read before the pump has started, which it must not be."
    thread = [write_message(i, f"{same}\n\nThis is version {i} of it.") for i in range(6)]
    taken = [one.text for one in summarize(thread).sentences]
    assert taken.count(same) == 1


def test_thread_may_be_one_message_long() -> None:
    summary = summarize([write_message(0, QUESTION)])
    assert {one.part for one in summary.sentences} == {"question"}
    assert len(summary.sentences) <= count_sentences(1)


def test_message_without_an_archived_parent_is_read() -> None:
    summary = summarize([write_message(1, ANSWER, "Sam Poe", 0)])
    assert [one.text for one in summary.sentences] == [
        "A lower pressure would also open the valve in a storm, so a second sensor is needed."
    ]


def test_words_of_chinese_and_japanese_are_found() -> None:
    body = "北港的水泵在涨潮的时候总是停下来，所以我们要换一个阀门。谢谢！"
    (one, *_) = summarize([write_message(0, body)]).sentences
    assert one.text == "北港的水泵在涨潮的时候总是停下来，所以我们要换一个阀门。"


def test_one_accent_does_not_make_a_sentence_too_long() -> None:
    body = "The maintainers’ " + "considerations notwithstanding " * 22 + "went unanswered."
    assert len(summarize([write_message(0, body)]).sentences) == 1


@pytest.mark.parametrize(
    "body", ["", "word " * 20_000, "漢字" * 50_000], ids=["empty", "words", "cjk"]
)
def test_text_without_a_readable_sentence_has_none(body: str) -> None:
    assert summarize([write_message(0, body)]).sentences == ()


def long_thread(messages: int, unit: str) -> list[MessageText]:
    quoted = "".join(f"> {line}\n" for line in unit.splitlines())
    return [
        write_message(i, f"{quoted}\n{unit}", f"Jo Roe {i % 7}", i - 1 if i else None)
        for i in range(messages)
    ]


def count_calls(messages: list[MessageText]) -> int:
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        summarize(messages)
    finally:
        sys.setprofile(None)
    return calls


HOSTILE = {
    "prose": "The pump at the north pier leaks again. We have to close it now.\n",
    "marks": "?!... " * 40 + "\n",
    "dots": "." * 400 + "\n",
    "no marks": "pump valve pier " * 20 + "\n",
    "items": "- a pump\n1. b valve\n(c) pier\n" * 8,
    "decisions": "Applied, thanks. I have now just also applied this. It was not.\n" * 4,
    "brackets": "()[]{}<>" * 40 + "\n",
    "ideographs": "水泵漏水。" * 40 + "\n",
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_twice_the_thread_takes_twice_the_work(unit: str) -> None:
    half, whole = count_calls(long_thread(60, unit)), count_calls(long_thread(120, unit))
    assert whole <= 2.5 * half


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_twice_the_message_takes_twice_the_work(unit: str) -> None:
    half = count_calls([write_message(0, unit * 40)])
    assert count_calls([write_message(0, unit * 80)]) <= 2.5 * half


def test_summary_of_thousands_of_messages_is_short() -> None:
    thread = long_thread(2_000, HOSTILE["prose"])
    assert len(summarize(thread).sentences) <= MAX_SENTENCES
    assert [count_sentences(n) for n in (1, 2, 5, 40, 2_000)] == [2, 3, 5, 8, MAX_SENTENCES]


STATED = (
    "Applied, thanks.", "Applied.", "Thanks, applied!", "Patch applied :)",
    "Patch applied (with the sign-off).", "Both patches applied.", "Committed to CVS.",
    "Fixed in release 2.3.", "Pushed to the main branch.", "I've applied the patch.",
    "I have just pushed this.", "I applied it, with a minor tweak.", "So I reverted it.",
    "Sam has committed the fix.", "This has been fixed.", "The second patch was rejected.",
    "For now, the patch is applied.", "Yes, it was withdrawn.", "The proposal has been postponed.",
    "The patch is now superseded by the next version.", "We agreed to keep the valve.",
    "The working group decided not to change it.", "The committee has approved the text.",
    "I withdraw the suggestion.", "The issue was marked as resolved.",
)  # fmt: skip
NOT_STATED = (
    "Not yet committed.", "The patch has not been applied.", "This hasn't been fixed.",
    "I would have applied it.", "I'll apply it tomorrow.",
    "If the patch is applied, the pump stops.", "Once this is committed, we can go on.",
    "It should be fixed.", "Could this be applied?", "Was it committed?",
    "Has the patch been applied?", "Please apply the patch.", "I think this was fixed.",
    "Maybe it was reverted.", "I hope it is merged soon.", "I noticed none of these were accepted.",
    "No patch was applied.", "He said it was committed.", 'The text says "patch applied" twice.',
    "I applied the patch locally.", "I applied the patch on my machine.",
    "I applied the patch and it crashed.", "I installed the pump and removed the old one.",
    "I decided to use images.", "Agreed.", "The other queries that were committed are slow.",
    "It is a feature since it was merged.", "Applied mathematics is hard.",
    "Fixed width columns are better.", "deferred.errback(timeout)",
    "A pump that has been removed leaks no more.", "",
)  # fmt: skip


@pytest.mark.parametrize("text", STATED)
def test_stated_decision_is_found(text: str) -> None:
    assert is_decision(text)


@pytest.mark.parametrize("text", NOT_STATED)
def test_other_sentences_are_no_decision(text: str) -> None:
    assert not is_decision(text)


def test_line_ends_within_a_sentence_make_no_difference() -> None:
    assert is_decision("I have just\napplied this.")
    assert not is_decision("I have\nnot applied this.")


ASKED = "The pump at the north pier stops at night. The valve of the old south pier is quite loose."


def reactions(*answers: str) -> list[int]:
    messages: list[MessageText] = [write_message(0, ASKED)]
    messages += [write_message(i, text, "Sam Poe", 0) for i, text in enumerate(answers, 1)]
    return count_reactions(messages, find_candidates(messages))[:2]


QUOTED = "> The pump at the north pier stops at night.\n"
WRAPPED = "> The pump at the\n> north pier stops\n> at night.\n"
NESTED = "> > The pump at the north pier stops at night.\n> Does it?\n"


@pytest.mark.parametrize(("answers", "counts"), [
    pytest.param([f"{QUOTED}\nIt needs oil every day."], [1, 0], id="quoted above"),
    pytest.param([f"{WRAPPED}\nIt needs oil."], [1, 0], id="wrapped differently"),
    pytest.param([f"{QUOTED}It needs oil.\n" * 2] * 2, [2, 0], id="once a message"),
    pytest.param([f"It needs oil.\n\n{QUOTED}"], [0, 0], id="quoted below"),
    pytest.param(["> The valve of the old south pier\n\nIt is."], [0, 1], id="half of it"),
    pytest.param(["> of the old south pier is\n\nIt is."], [0, 0], id="less than half"),
    pytest.param([f"{NESTED}\nIt does, every night."], [0, 0], id="a quote in a quote"),
])  # fmt: skip
def test_messages_that_quote_above_an_answer_count(answers: list[str], counts: list[int]) -> None:
    assert reactions(*answers) == counts


def test_only_the_end_of_a_long_quote_is_answered() -> None:
    middle = "".join(
        f"> Line {i} of a long report about other things entirely.\n" for i in range(20)
    )
    quote = f"> The pump at the north pier stops at night.\n{middle}"
    assert reactions(f"{quote}\nThat is long.") == [0, 0]

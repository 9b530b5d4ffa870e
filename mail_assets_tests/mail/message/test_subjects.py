"""Subjects: prefixes, answers, base subjects, and topics for comparison."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message.subjects import base_subject, find_topic, is_answer


@pytest.mark.parametrize(("subject", "expected"), [
    ("fix x", "fix x"),
    ("Re: fix x", "fix x"),
    ("RE : fix x", "fix x"),
    ("AW: WG: Fwd: fix x", "fix x"),
    ("Re[2]: Re(3): Re^4: fix x", "fix x"),
    ("回复：答复: 转发：fix x", "fix x"),
    ("SV: Antw: Res: VS: Odp: YNT: TR: fix x", "fix x"),
    ("Vá: RIF: Отв: Doorst: RV: ENC: PD: fix x", "fix x"),
    ("返信: 転送: 회신: ΑΠ: תשובה: رد: fix x", "fix x"),
    ("Отг: Răspuns: Trả lời: ตอบกลับ: پاسخ: 답장: На: Відповідь: Одг: fix x", "fix x"),
    ("Réf. : Antw.: Svar: Vastaus: Yanıt: 答：ＲＥ：fix x", "fix x"),
    ("【dev】Re:〔dev〕「dev」 fix x", "fix x"),
    ("TL: fix x", "TL: fix x"),
    ("R: fix x", "R: fix x"),
    ("[HACKERS] Re: [PATCH v3 2/5] fix x", "fix x"),
    ("[HACKERS] Re: AW: Re[2]: 回复：[PATCH v3 2/5] fix x (fwd)", "fix x"),
    ("fix  x\t(Fwd) (fwd)", "fix x"),
    ("EXTERNAL: Re: fix x", "fix x"),
    ("Re: EXTERNAL: fix x", "fix x"),
    ("External Re: fix x", "fix x"),
    ("RE: [External] : Re: [EXT] - fix x", "fix x"),
    ("*** SPAM *** Re: fix x", "fix x"),
    ("Re: ***SPAM*** {Spam?} *****UNCHECKED***** fix x", "fix x"),
    ("(Extern) AW: <EXT> #EXTERN# fix x", "fix x"),
    ("外部邮件: 回复: [外部] fix x", "fix x"),
    ("External: fix x", "External: fix x"),
    ("Spam filter: fix x", "Spam filter: fix x"),
    ("ext: fix x", "ext: fix x"),
    ("EXT4: fix x", "EXT4: fix x"),
    ("*** fix *** x", "*** fix *** x"),
    ("***SPAM***", "***SPAM***"),
    ("fix [x] Re: y", "fix [x] Re: y"),
    ("Regression: x", "Regression: x"),
    ("reading x", "reading x"),
    ("[ANNOUNCE]", "[ANNOUNCE]"),
    ("Re: [ANNOUNCE]", "[ANNOUNCE]"),
    ("(fwd)", "(fwd)"),
    ("", ""),
    (" ", ""),
])  # fmt: skip
def test_prefixes_and_tags_are_cut(subject: str, expected: str) -> None:
    assert base_subject(subject) == expected


WORDS = ("Re: ", "[X] ", "fwd:", " (fwd)", "fix", "]", "[", " ", "Re", "回复：", "EXT:", "**SPAM**")


@settings(max_examples=200)
@given(st.lists(st.sampled_from(WORDS)))
def test_base_subject_is_idempotent_and_not_empty(words: list[str]) -> None:
    subject = "".join(words)
    base = base_subject(subject)
    assert base_subject(base) == base
    assert bool(base) == bool(subject.strip())
    assert base_subject("Re: " + subject) in (base, "Re:")


@pytest.mark.parametrize("subject", [
    *("Re: x", "RE : x", "re[2]: x", "Re^2: x", "Aw: x", "Antw: x", "Sv: x", "Vs: x", "Odp: x"),
    *("R: x", "RES: x", "回复：x", "答复: x", "Ｒｅ： x", "[dev] Re: x", "Re: Fwd: x",
      "\u200bRe: x", "【dev】 Re: x", "Réf. : x", "EXTERNAL: Re: x", "***SPAM*** [dev] Re: x"),
])  # fmt: skip
def test_answer_begins_with_a_prefix_of_answers(subject: str) -> None:
    assert is_answer(subject)


@pytest.mark.parametrize("subject", [
    "x", "Fwd: x", "Fwd: Re: x", "转发: x", "Regarding: x", "[Re: x]", "restart: x", "",
    "EXTERNAL: x", "*** SPAM *** x",
])  # fmt: skip
def test_forwards_and_words_are_no_answers(subject: str) -> None:
    assert not is_answer(subject)


@pytest.mark.parametrize(("subject", "topic"), [
    ("[dev] Re: AW: Vacuum  Locks", "vacuum locks"),
    ("R: Vacuum locks", "vacuum locks"),
    ("TL: Ats: Vast: Vacuum locks", "vacuum locks"),
    ("【dev】Trả lời: Vacuum locks", "vacuum locks"),
    ("Ｖａｃｕｕｍ locks", "vacuum locks"),
    ("Re: Vacuum locks (was: Re: Old things)", "vacuum locks"),
    ("Re: Vacuum locks [was Old things]", "vacuum locks"),
    ("Re: [PATCH v3 2/5] fix locks", "fix locks v3"),
    ("Re: [PATCH 2/5] fix locks", "fix locks"),
    ("savepoints", "savepoints"),
    ("回复: 数据库备份失败", "数据库备份失败"),
])  # fmt: skip
def test_topic_is_the_same_however_programs_write_it(subject: str, topic: str) -> None:
    assert find_topic(subject) == topic


@pytest.mark.parametrize("subject", [
    *("", "Re:", "[patch]", "Re: [PATCH v2 1/3]", "patch", "Your mail", "Re: help!", "Question"),
    *("test", "a bug", "12345", "7.1", "Re: Re", "Hilfe", "Problème", "помогите", "求助"),
    *("Re: (no subject)", "quick question", "Hello!!!", "Re: ***SPAM***", "EXT: help"),
])  # fmt: skip
def test_subject_that_says_too_little_has_no_topic(subject: str) -> None:
    assert find_topic(subject) == ""

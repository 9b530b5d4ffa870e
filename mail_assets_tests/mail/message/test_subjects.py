"""Subjects: prefixes, answers, base subjects, and the topics that are compared."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.mail.message.subjects import base_subject


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("fix x", "fix x"),
        ("Re: fix x", "fix x"),
        ("RE : fix x", "fix x"),
        ("AW: WG: Fwd: fix x", "fix x"),
        ("Re[2]: Re(3): Re^4: fix x", "fix x"),
        ("回复：答复: 转发：fix x", "fix x"),
        ("SV: Antw: Res: VS: Odp: YNT: TR: fix x", "fix x"),
        ("Vá: RIF: Отв: Doorst: RV: ENC: PD: fix x", "fix x"),
        ("返信: 転送: 회신: ΑΠ: תשובה: رد: fix x", "fix x"),
        ("R: fix x", "R: fix x"),
        ("[HACKERS] Re: [PATCH v3 2/5] fix x", "fix x"),
        ("[HACKERS] Re: AW: Re[2]: 回复：[PATCH v3 2/5] fix x (fwd)", "fix x"),
        ("fix  x\t(Fwd) (fwd)", "fix x"),
        ("fix [x] Re: y", "fix [x] Re: y"),
        ("Regression: x", "Regression: x"),
        ("reading x", "reading x"),
        ("[ANNOUNCE]", "[ANNOUNCE]"),
        ("Re: [ANNOUNCE]", "[ANNOUNCE]"),
        ("(fwd)", "(fwd)"),
        ("", ""),
        (" ", ""),
    ],
)
def test_prefixes_and_tags_are_cut(subject: str, expected: str) -> None:
    assert base_subject(subject) == expected


@settings(max_examples=200)
@given(
    st.lists(
        st.sampled_from(["Re: ", "[X] ", "fwd:", " (fwd)", "fix", "]", "[", " ", "Re", "回复："])
    )
)
def test_base_subject_is_idempotent_and_not_empty(words: list[str]) -> None:
    subject = "".join(words)
    base = base_subject(subject)
    assert base_subject(base) == base
    assert bool(base) == bool(subject.strip())
    assert base_subject("Re: " + subject) in (base, "Re:")

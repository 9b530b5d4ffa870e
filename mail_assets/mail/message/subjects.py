"""The base subject, which all messages of a conversation share (RFC 5256 section 2.1)."""

import re

MAX_SUBJECT = 2_000  # characters; a Postgres btree entry holds at most 2,704 bytes

# What mail programs put in front of replies and forwards, by language; Italian `R:` and `I:` are
# left out, since they begin subjects of their own.
_PREFIXES = {
    "English": "re fw fwd",
    "Arabic": "رد",
    "Chinese": "回复 回覆 答复 答覆 转发 轉寄",
    "Danish, Norwegian, Swedish": "sv vs vb",
    "Dutch": "antw doorst",
    "Finnish": "vs vl",
    "French": "réf ref tr",
    "German": "aw antwort wg",
    "Greek": "απ σχετ",
    "Hebrew": "תשובה השב הועבר",
    "Hungarian": "vá",
    "Italian": "rif",
    "Japanese": "返信 転送",
    "Korean": "회신 전달",
    "Polish": "odp pd",
    "Portuguese": "res enc",
    "Russian, Ukrainian": "отв ответ відп",
    "Spanish": "rv",
    "Turkish": "ynt ilt",
    "Welsh": "atb",
}
_PREFIX = re.compile(
    rf"\s*+(?:(?:{'|'.join(sorted(set(' '.join(_PREFIXES.values()).split())))})\s*+"
    r"(?:\[\d{1,4}\]|\(\d{1,4}\)|\^\d{1,4})?\s*+[:：]|\[[^\]\[]{1,60}\])",
    re.I,
)
_FORWARDED = "(fwd)"


def base_subject(subject: str) -> str:
    """The subject without reply and forward prefixes, list tags and patch counters.

    `[HACKERS] Re: AW: Re[2]: [PATCH v3 2/5] fix x (fwd)` becomes `fix x`. A subject made of
    nothing else keeps its last part.
    """
    at = 0
    while prefix := _PREFIX.match(subject, at):
        if not subject[prefix.end() :].strip():
            break
        at = prefix.end()
    words = subject[at:].split()
    while len(words) > 1 and words[-1].lower() == _FORWARDED:
        words.pop()
    return " ".join(words)

"""Find cheaply the lines at which a signature or a footer could begin: few of all."""

from mail_assets.mail.body.scrubbed_parts import SCRUBBED_ENDS

_MARKS = "-_=*~#–—"
_MAX_ABOVE = 30  # characters of a line above: a name, or a rule's rest; else a paragraph goes on
_LAST_LATIN = "\u024f"
_EDGES = '!<>*()[]{}_-=:,;."“”¡¿~# '
_LIST = frozenset({"list", "List", "LIST"})
_LAST_LETTERS = frozenset("tT") | {end[-1] for end in SCRUBBED_ENDS}
_RULE_ENDS = ("-", "_", "=", "*", "~", "#")
_DEVICE_ENDS = ("送信", "küldve", "gönderildi", "보냄", "보냈습니다")
#: The first letters of the phrases in other scripts than Latin.
_FOREIGN_LETTERS = frozenset("онσςנأت发從从傳發")

#: The first words of all phrases in footer_phrases.py and signature_phrases.py.
_FIRST_WORDS = frozenset(
    (
        *("to", "sent", "for", "you", "list", "subscribe", "unsubscribe", "yahoo", "community"),
        *("groups", "groups.io", "this", "these", "reply", "visit", "mailing", "email", "e-mail"),
        *("configure", "if", "no", "internal", "checked", "incoming", "outgoing", "virus-free"),
        *("virus", "the", "diese", "der", "ce", "l", "este", "esta", "questo", "le", "dit", "deze"),
        *("do", "get", "join", "confidentiality", "disclaimer", "legal", "important", "notice"),
        *("privileged", "information", "content", "contents", "any", "please", "your", "posted"),
        *("written", "von", "mit", "aus", "gesendet", "verschickt", "versendet", "envoyé"),
        *("envoyer", "envoye", "skickat", "skickades", "sendt", "lähetetty", "verzonden"),
        *("verstuurd", "enviado", "enviat", "inviato", "wysłano", "wysłane", "wysłany"),
        *("odesláno", "odoslané", "elküldve", "trimis", "poslano"),
    )
)


def find_ending_heads(texts: list[str], own: list[int]) -> list[int]:
    """Return those of some visible lines at which a signature or a footer could begin.

    texts: all lines of the body, without blanks at both ends.
    """
    return [
        i
        for i in own
        if len(texts[i - 1]) <= _MAX_ABOVE
        or texts[i - 1][-1] in _MARKS
        or texts[i][0] in _MARKS
        or texts[i][-1] in _LAST_LETTERS
        or i == 0
        if begins_ending(texts, i)
    ]


def begins_ending(texts: list[str], i: int) -> bool:
    """Tell whether a signature or a footer could begin at line i."""
    text = texts[i]
    if not text:
        return False
    if text[0] in _MARKS:
        return text[:2] == "--" or text[:3] == "- -" or text[-1] in _MARKS or text[0] in "*_–—"
    if text[-4:] in _LIST or text.endswith(SCRUBBED_ENDS):
        return True
    above = texts[i - 1] if i else ""
    if len(above) > _MAX_ABOVE and not above.endswith(_RULE_ENDS):
        return False
    word = text.split(None, 1)[0].strip(_EDGES).lower()
    return (
        word in _FIRST_WORDS
        or (text[0] > _LAST_LATIN and _is_foreign_ending(text))
        or text[0] == "<"
        or word.replace("’", "'").partition("'")[0] in _FIRST_WORDS
        or text.rstrip(".!").endswith(_DEVICE_ENDS)
    )


def _is_foreign_ending(text: str) -> bool:
    """Tell whether a text in another script could be the line of a device or a list's name."""
    lower = text.lower()
    return (
        not lower[0].isalpha()
        or lower[0] in _FOREIGN_LETTERS
        or any(word in lower for word in _DEVICE_ENDS)
        or "mailing list" in lower
    )

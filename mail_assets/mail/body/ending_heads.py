"""Tell cheaply which lines could begin a signature or a footer: asked of every line of text."""

from mail_assets.mail.body.scrubbed_parts import SCRUBBED_ENDS

_MARKS = "-_=*~#–—"
_MAX_ABOVE = 30  # characters of a line above: a name, or a rule's rest; else a paragraph goes on
_LAST_LATIN = "\u024f"
_EDGES = '!<>*()[]{}_-=:,;."“”¡¿~# '
_RULE_ENDS = ("-", "_", "=", "*", "~", "#")
_DEVICE_ENDS = ("送信", "küldve", "gönderildi", "보냄", "보냈습니다")

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


def begins_ending(lines: list[str], i: int) -> bool:
    """Tell whether a signature or a footer could begin at line i."""
    text = lines[i].strip()
    if not text:
        return False
    if text[0] in _MARKS:
        return text[:2] == "--" or text[:3] == "- -" or text[-1] in _MARKS or text[0] in "*_–—"
    if text[-4:] in ("list", "List", "LIST") or text.endswith(SCRUBBED_ENDS):
        return True
    above = lines[i - 1].strip() if i else ""
    if len(above) > _MAX_ABOVE and not above.endswith(_RULE_ENDS):
        return False
    word = text.split(None, 1)[0].strip(_EDGES).lower()
    return (
        word in _FIRST_WORDS
        or text[0] > _LAST_LATIN
        or word.replace("’", "'").partition("'")[0] in _FIRST_WORDS
        or text.rstrip(".!").endswith(_DEVICE_ENDS)
        or text[0] in "<"
    )

"""Phrases that mail programs and people write around quotes and at the end of a mail.

Phrases that announce a quote are in `languages/`, one TOML file for each language. They come from
the programs' own translations: Thunderbird (mailnews.reply_header_* and forward_header_*), K-9 Mail
(message_compose_reply_header_fmt*) and Roundcube (mailreplyintro, originalmessage). Others come
from samples of Gmail, Apple Mail, Outlook and Yahoo Mail in crisp-oss/email-forward-parser.

Phrases of footers and signatures are below, as case-insensitive regular expressions for the
beginning of a line. Other footers and signatures need no phrase: blocks that repeat are learnt
(`endings`).
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from mail_assets.mail.body.lines import fold

_PLACEHOLDER = re.compile(r"\{(?:author|date|id)\}")
_LOST = ("?", "\ufffd")  # replacements of accented letters in archives without a charset
_GAP = "\0"  # a placeholder whose name no longer matters


class Template(NamedTuple):
    """The fixed words of a phrase with placeholders."""

    start: str
    words: tuple[str, ...]
    end: str
    dated: bool  # its first placeholder is a date

    def matches(self, text: str) -> bool:
        """Return whether a folded text is an instance of the phrase; no placeholder is empty."""
        if not (text.startswith(self.start) and text.endswith(self.end)):
            return False
        at = len(self.start)
        for word in self.words:
            found = text.find(word, at + 1)
            if found < 0:
                return False
            at = found + len(word)
        return at < len(text) - len(self.end)

    def key(self) -> str:
        """Return the longest word of the phrase, which every instance has; "" if it has no word."""
        fixed = _GAP.join((self.start, *self.words, self.end))
        tokens = [token for token in fixed.split() if _GAP not in token]
        return max(tokens, key=len, default="")


class Phrases(NamedTuple):
    """The folded phrases of all languages."""

    attributions: dict[str, list[Template]]  # by key; those without a key are not ASCII
    fields: dict[str, str]  # a field's name: "from", "date", "to", "cc", "subject" or "other"
    separators: dict[str, str]  # between dashes: "original", "forwarded" or "forwarded_end"
    separator_templates: list[tuple[Template, str]]
    begin: set[str]  # alone on a line, without the colon
    starts: tuple[str, ...]  # of attributions: "on ", "am ", "在"
    ends: tuple[str, ...]  # of attributions that do not end in a colon

    def find_templates(self, text: str) -> list[Template]:
        """Return the attributions that a folded text may match."""
        tokens = text.split() if text.isascii() else (*text.split(), "")
        known = self.attributions
        return [template for token in tokens if token in known for template in known[token]]


@cache
def load_phrases() -> Phrases:
    """Read the files of all languages, once.

    Raises:
        ValueError: a file is not valid TOML or has a template without a fixed word.
            The message names the file.
    """
    phrases = Phrases({}, {}, {}, [], set(), (), ())
    folder = files("mail_assets.mail.body.languages")
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".toml"):
            try:
                _add_language(phrases, tomllib.loads(file.read_text("utf-8")))
            except ValueError as error:
                raise ValueError(f"{file.name}: {error}") from error
    templates = [template for same in phrases.attributions.values() for template in same]
    return phrases._replace(
        starts=tuple(sorted({t.start for t in templates if _opens(t.start)})),
        ends=tuple(sorted({t.end.strip() for t in templates if t.end[-1:] not in ":"})),
    )


def parse_template(phrase: str) -> Template:
    """Split "On {date}, {author} wrote:" into its fixed words.

    Raises:
        ValueError: the phrase has no fixed word.
    """
    first = _PLACEHOLDER.search(phrase)
    start, *words, end = fold(_PLACEHOLDER.sub(_GAP, phrase)).split(_GAP)
    words = [word for word in words if _has_letter(word)]
    if not any(_has_letter(part) for part in (start, *words, end)):
        raise ValueError(f"no fixed word in {phrase!r}")
    return Template(start, tuple(words), end, first is not None and first[0] == "{date}")


def _spellings(phrases: Iterable[str]) -> Iterator[str]:
    """Yield each phrase as written, and mostly Latin ones also with their accented letters lost."""
    for phrase in phrases:
        yield phrase
        fixed = _PLACEHOLDER.sub("", phrase)
        foreign = sum(not letter.isascii() for letter in fixed)
        if 0 < foreign * 2 < sum(map(str.isalpha, fixed)):
            for lost in _LOST:
                yield "".join(letter if letter.isascii() else lost for letter in phrase)


def _opens(start: str) -> bool:
    return start.endswith(" ") or (start != "" and not start.isascii())


def _has_letter(text: str) -> bool:
    return any(character.isalpha() for character in text)


def _add_language(phrases: Phrases, language: dict[str, Any]) -> None:
    for template in map(parse_template, _spellings(language["attributions"])):
        same = phrases.attributions.setdefault(template.key(), [])
        if template not in same:
            same.append(template)
    for kind, names in language["fields"].items():
        for name in _spellings(names):
            phrases.fields.setdefault(fold(name), kind)
    for kind in ("original", "forwarded", "forwarded_end"):
        for phrase in _spellings(language.get(kind, ())):
            if _PLACEHOLDER.search(phrase):
                phrases.separator_templates.append((parse_template(phrase), kind))
            else:
                phrases.separators.setdefault(fold(phrase), kind)
    phrases.begin.update(map(fold, language.get("begin", ())))


#: Footers of list managers, forges, bug trackers and forums.
LIST_PHRASES = (
    # Majordomo
    r"to unsubscribe from this list: send the line",
    r"sent via \S{1,80} mailing list\b",
    # ezmlm, Debian, JISCMail, LISTSERV, Sympa
    r"to (?:un)?subscribe,? (?:e-?mail|send (?:an? )?(?:e-?mail|mail|message))\b",
    r"to unsubscribe(?: from (?:the|this)\b.{1,60}| or .{1,40})?"
    r"(?:,? (?:visit|go to|click|use|see|reply|please|follow|write to|"
    r"send (?:an? )?(?:e-?mail|mail|message))\b|:)",
    r"to unsubscribe send (?:an? )?(?:e-?mail|mail|message)",
    r"for additional commands, e-?mail\b",
    r"you may leave the list at any time by sending the command",
    r"to leave (?:this list|the list|or manage your subscription)\b",
    r"(?:mailing[ -]?)?list (?:info|information|archives?|guidelines)(?: page)?: +<?https?://",
    r"(?:un)?subscribe(?: here| info)?:? +(?:https?://|<?mailto:)",
    # Google Groups
    r"you(?:'re| are)? receive(?:d|ing) this message because you(?:'re| are)? (?:a )?subscribe[dr]",
    r"-{1,20}~[-~]{6,80}$",
    # Yahoo! Groups
    r"-{6,40} yahoo! groups sponsor -{6,40}",
    r"yahoo! groups links$",
    r"<\*> (?:to|your|join)\b",
    r"your use of yahoo! groups is subject to",
    r"community email addresses:",
    # groups.io
    r"(?:-=){6,40}-?$",
    r"groups\.io links: you receive all messages",
    # Mailman
    r"\S{1,80} mailing list -- (?:\S{1,80}@|read https?://)",
    # SourceForge
    r"this sf\.net email is sponsored",
    # GitHub, GitLab, Gerrit, Launchpad, Phabricator
    r"reply to this email directly",
    r"you(?:'re| are) receiving this (?:e?-?mail |message |bug |notification )?because\b",
    r"-+ you are receiving this mail because:? -+",
    r"you received this (?:bug notification|message|e?-?mail) because\b",
    r"to view, visit https?://",
    r"to respond, reply to this email or visit",
    r"visit topic or reply to this email",
    r"mailing list: https?://launchpad\.net/",
    r"email preferences$",
    # Bugzilla, Jira
    r"configure bugmail: https?://",
    r"this (?:message|email) (?:was|is) (?:automatically (?:generated|sent)|sent) by "
    r"(?:atlassian )?jira\b",
    r"if you think it was sent incorrectly,? (?:please )?contact",
)

#: Lines of virus scanners and free mail services.
SERVICE_PHRASES = (
    r"no virus found in this (?:incoming |outgoing )?message",
    r"(?:internal virus database is out of date|checked by avg\b)",
    r"(?:incoming|outgoing) mail is certified virus free",
    r"virus-free\. (?:https?://)?www\.av",
    r"this e-?mail (?:has been|was|is) (?:checked|scanned|virus)\b.{1,60}",
    r"(?:this|the) (?:message|e-?mail) (?:has been|was) (?:checked|scanned) (?:for virus|by)\b",
    r"diese e-?mail wurde (?:von|auf)\b.{1,60}(?:avast|viren|geprüft)",
    r"l.absence de virus dans ce courrier",
    r"este (?:correo|mensaje|e-?mail) .{1,60}(?:virus|avast)",
    r"do you yahoo!\?",
    r"get your (?:private, )?free (?:@yahoo|e-?mail)\b",
    r"join the world.s largest e-?mail service",
    r"this mail (?:was )?sent (?:through|via)\b",
    r"to find out more about the anon(?:ymous)? service, send mail",  # anon.penet.fi
)

#: Beginnings of companies' disclaimers; the paragraph must contain two of DISCLAIMER_WORDS.
DISCLAIMER_PHRASES = (
    r"(?:[\W_]{0,20})(?:confidentiality (?:notice|note|statement)|disclaimer|legal notice|"
    r"important(?: notice| information)?|notice of confidentiality|privileged)\b",
    r"(?:the )?(?:(?:privileged|confidential)(?:,| and|) ){0,2}"
    r"(?:information|contents?)(?: contained)? (?:in|of) this "
    r"(?:e-?mail|message|electronic)",
    r"th(?:is|e)(?: attached)? (?:e-?mail|electronic|message|communication|transmission)\b",
    r"if you are not the (?:intended|named|addressee)\b",
    r"any views? or opinions?\b",
    r"diese (?:e-?mail|nachricht)\b",
    r"der inhalt dieser e-?mail\b",
    r"ce (?:message|courriel|courrier)\b",
    r"l.information contenue dans\b",
    r"este (?:mensaje|correo|e-?mail|documento)\b",
    r"esta (?:mensagem|comunicación)\b",
    r"(?:questo messaggio|le informazioni contenute)\b",
    r"(?:dit|deze) (?:bericht|e-?mail)\b",
    r"(?:ta|niniejsza) (?:wiadomo(?:ść|sc)|korespondencja)\b",
    r"(?:det(?:te|ta)|denne) (?:meddelande|e-?(?:post|brev|mail)\w{0,10}|melding|mail)\b",
    r"(?:това|данное|настоящее|это) (?:\w+ ){0,2}(?:сообщение|письмо)",
    r"(?:本|此)(?:电子|電子)?(?:邮件|郵件|信|电邮)",
    r"(?:この|本)(?:電子)?(?:メール|メッセージ)",
    r"(?:본|이) (?:전자)?(?:메일|이메일)",
    r"please consider the environment before print",
)
DISCLAIMER_WORDS = (
    r"confiden[tc]i|vertraulich|riservat|vertrouwelijk|privileged|intended|recipient|addressee|"
    r"empfänger|destinat|geadresseerde|disclos|unauthori[sz]ed|unbefugt|delete|lösch|vernicht|"
    r"détrui|elimin|konfidenti|mottagar|mottaker|modtager|radera|slett|конфиденц|адресат|"
    r"получател|удал|adresat|poufn|zabronion|保密|机密|機密|秘密|收件人|收信人|删除|刪除|受信者|宛先|削除|기밀|수신|삭제|"
    r"copying|copied|monitored|legally|liabilit|viruses|before print"
)


#: Phrases that announce answers between the lines of the answered mail.
INLINE_PHRASES = (
    # English
    r"\b(?:see|find|my|some|embedded|thoughts|notes|comment(?:s|ed|ing)?|answer(?:s|ed|ing)?|"
    r"repl(?:y|ies|ied|ying)|respon(?:se|ses|ded|ding))\b.{0,40}\bin[- ]?lined?\b"
    r"(?=[^\w\n]{0,9}$|[.,;:!)]| (?:below|and|with|in)\b)",
    r"\bin[- ]?line\b.{0,25}\b(?:below|comments?|repl(?:y|ies)|responses?|answers?)\b",
    r"^[^\w\n]{0,9}in[- ]?lined?[^\w\n]{0,9}$",
    # German, French, Spanish, Italian, Chinese, Japanese
    r"\bantworten? (?:unten )?(?:inline|im text)\b",
    r"\b(?:réponses?|commentaires?)\b.{0,20}\b(?:dans le texte|en ligne)\b",
    r"\b(?:respuestas?|comentarios?)\b.{0,20}\b(?:en línea|entre líneas|en el texto)\b",
    r"\b(?:risposte|commenti)\b.{0,20}\bnel testo\b",
    r"(?:内联|行内|文中)(?:回复|答复)|回复(?:在|见)(?:内联|行内|文中|下文)",
    r"インライン(?:で|にて)",
)

#: Beginnings of the lines that phones and mail programs add, such as "Sent from my phone", if some
#: spelling is ASCII. Each begins with a letter.
DEVICE_PHRASES = (
    r"(?:sent|posted|written) (?:from|via|using|by|with|on) (?:my |the |an? |iphone|ipad|mail\b|"
    r"yahoo|outlook\b|gmail|samsung|android|blackberry|windows|nokia|proton|tutanota|k-9|mobile|"
    r"mutt|gnus|thunderbird|airmail|mailbox|fairphone|nine\b|aqua|rim\b)",
    r"get outlook for ",
    r"(?:diese (?:nachricht|e-?mail) wurde )?(?:von|mit|aus) (?:meinem|meiner|dem|der|unterwegs|"
    r"outlook|mobile|yahoo|web\.de)\b.{0,60}\b(?:gesendet|verschickt|geschrieben)",
    r"(?:gesendet|verschickt|versendet) (?:von|mit|aus|über)\b",
    r"envoy(?:é|er|e) (?:de(?:puis)?|à partir|avec|par) ",
    r"(?:skickat|skickades|sendt|sent|lähetetty|verzonden|verstuurd) (?:från|fra|fran|"
    r"vanaf|van|met|via|med) ",
    r"enviado (?:desde|do|de|a partir|pelo|mediante|via|con) ",
    r"enviat (?:des|de|amb) ",
    r"inviato (?:da|dal|con|tramite) ",
    r"trimis (?:de pe|din|prin) ",
    r"poslano (?:z|s|sa|iz) ",
)
#: Beginnings of such lines with a non-ASCII letter in every spelling.
FOREIGN_DEVICE_PHRASES = (
    r"lähetetty .{1,40}(?:sta|stä|lla|llä|lta|ltä)\b",
    r"wysłan[eoy] (?:z|ze|przez|za pomocą) ",
    r"odesláno (?:z|ze|pomocí) ",
    r"odoslané (?:z|zo) ",
    r"(?:elküldve|küldve) .{1,60}",
    r".{1,30}(?:telefonomról|iphone-omról|készülékemről) küldve",
    r".{1,30}(?:'dan|’dan|'den|’den|'umdan|’umdan|imden|ımdan) gönderildi",
    r"отправлено (?:с|со|из|от) ",
    r"надіслано (?:з|із) ",
    r"στάλθηκε από ",
    r"נשלח מ",
    r"أرسلت من|تم الإرسال من",
    r"发自我的|发自|從我的|从我的|傳送自|發自我的",
    r".{0,20}(?:から送信|より送信)",
    r".{0,20}(?:에서 보냄|에서 보냈습니다)",
)

#: Words before a name at the end, such as "Regards,". They are text; the name is a signature.
CLOSINGS = frozenset(
    phrase.strip()
    for phrase in """
    regards|best regards|kind regards|kindest regards|warm regards|warmest regards|many regards
    with regards|with best regards|with kind regards|my best regards|rgds|brgds|br|kr|wkr|regard
    best|all the best|best wishes|with best wishes|kind wishes|good luck|cheers|later|ciao|bye
    yours|yours truly|yours sincerely|yours faithfully|your|sincerely|sincerely yours|very truly
    yours truly|respectfully|cordially|warmly|faithfully|peace|enjoy|have fun|happy hacking
    take care|greetings|best greetings|greets|greetz|salutations|love|hugs|see ya|see you|cu
    see you soon|talk to you soon|hth|hope this helps|hope that helps|hope it helps|share and enjoy
    thanks|thank you|many thanks|thanks a lot|thanks again|thanks in advance|thank you in advance
    thx|thanx|tia|ta|tnx|thanks very much|thank you very much|thanks and regards|thanks & regards
    thanks/regards|thanks!/regards|cheers and thanks|much appreciated|thanks for your help
    thanks for any help|thanks for your time|thanks for all your help|many thanks in advance
    mfg|mit freundlichen grüßen|mit freundlichen grüssen|mit freundlichen gruessen|lg|vg
    mit freundlichem gruß|freundliche grüße|freundliche grüsse|viele grüße|viele grüsse
    viele gruesse|liebe grüße|liebe grüsse|beste grüße|schöne grüße|herzliche grüße|gruß|gruss
    grüße|gruesse|grüsse|mit besten grüßen|servus|tschüß|tschüss|tschau|danke|vielen dank
    danke schön
    cordialement|bien cordialement|très cordialement|amicalement|bien à vous|cdlt|salutations
    sincères salutations|meilleures salutations|merci|merci d'avance|merci beaucoup|a+|à bientôt
    saludos|un saludo|saludos cordiales|un cordial saludo|atentamente|gracias|muchas gracias|salu2
    un abrazo|abrazos|hasta luego|salut|salutacions|gràcies
    atenciosamente|abraços|um abraço|abraço|obrigado|obrigada|cumprimentos|saudações|[]s|att
    cordiali saluti|distinti saluti|saluti|un saluto|grazie|cari saluti|ciao a tutti
    groeten|groet|groetjes|met vriendelijke groet|met vriendelijke groeten|mvg|bedankt|gr
    mvh|vänliga hälsningar|med vänliga hälsningar|med vänlig hälsning|hälsningar|tack|hilsen|hälsn
    med venlig hilsen|venlig hilsen|vennlig hilsen|med vennlig hilsen|mange hilsner|tak|takk|vh
    terveisin|ystävällisin terveisin|t|terv|kiitos|kiitoksia|yt
    pozdrawiam|z poważaniem|serdecznie pozdrawiam|dzięki|pozdrowienia|dziękuję
    s pozdravem|pozdrav|s pozdravom|hezký den|díky|děkuji|lp|lep pozdrav|hvala|üdv|üdvözlettel
    köszönettel|cu stimă|cu respect|mulțumesc|saygılar|saygılarımla|iyi çalışmalar|teşekkürler
    с уважением|с наилучшими пожеланиями|спасибо|з повагою|дякую|поздрави|με εκτίμηση|ευχαριστώ
    よろしくお願いします|よろしくお願いいたします|敬具|谢谢|謝謝|此致|祝好|감사합니다
    """.replace("\n", "|").split("|")
    if phrase.strip()
)
#: Beginnings of closings that may address the reader: in "Thanks, Jo" the author is not Jo.
THANKS = (
    "thank", "thx", "thanx", "tia", "ta", "tnx", "merci", "danke", "gracias", "grazie", "obrigad",
    "tack", "takk", "tak", "bedankt", "kiitos", "good luck", "much", "servus", "later", "bye",
)  # fmt: skip

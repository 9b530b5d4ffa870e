"""Read subjects: prefixes of answers, base subjects (RFC 5256 section 2.1), and topics.

The base subject is for people and keeps its case. The topic is for comparisons: all messages of a
conversation have the same one, even if a mail program does not name the parent.
"""

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

_KEPT = 4096  # subjects in the caches; mails of a thread have the same subject
MAX_SUBJECT = 2_000  # characters; a Postgres btree entry holds at most 2,704 bytes

#: Prefixes that mail programs write before answers, by language. Source:
#: https://en.wikipedia.org/wiki/List_of_email_subject_abbreviations.
_ANSWERS = {
    "English": "re ｒｅ reply",
    "Arabic": "رد",
    "Bulgarian": "отг отговор",
    "Chinese": "回复 回覆 答复 答覆 答",
    "Croatian, Slovene": "odg",
    "Danish, Norwegian, Swedish": "sv svar",
    "Dutch": "antw antwoord",
    "Finnish": "vs vastaus",
    "French": "réf ref réponse",
    "German": "aw antwort",
    "Greek": "απ σχετ",
    "Hebrew": "תשובה השב",
    "Hungarian": "vá",
    "Indonesian": "bls",
    "Italian": "rif",
    "Japanese": "返信",
    "Korean": "회신 답장",
    "Latvian": "atb",
    "Persian": "پاسخ",
    "Polish": "odp",
    "Portuguese": "res",
    "Romanian": "răsp răspuns",
    "Russian, Ukrainian": "на отв ответ відп відповідь",
    "Serbian": "одг",
    "Thai": "ตอบ ตอบกลับ",
    "Turkish": "ynt yanıt",
    "Vietnamese": "trả_lời",
    "Welsh": "atb",
}
#: Prefixes of forwards by language.
_FORWARDS = {
    "English": "fw fwd",
    "Chinese": "转发 轉寄",
    "Danish, Norwegian, Swedish": "vb",
    "Dutch": "doorst",
    "Finnish": "vl",
    "French": "tr",
    "German": "wg",
    "Hebrew": "הועבר",
    "Japanese": "転送",
    "Korean": "전달",
    "Polish": "pd",
    "Portuguese": "enc",
    "Spanish": "rv",
    "Turkish": "ilt",
}
#: Prefixes of Italian, Lithuanian, Estonian and Vietnamese answers, with which ordinary subjects
#: begin too. Removed from topics, but not from base subjects.
_UNSURE_ANSWER = "(?:r|ats|vast|tl)"

#: Marks that gateways put before the subject of external mail, by language.
_OUTSIDE = {
    "English": "external external_e-mail external_email external_mail external_message "
    "external_sender ext outside",
    "Chinese": "外部 外部邮件 外部郵件",
    "Czech, Slovak": "externí",
    "Danish, Dutch, German, Norwegian, Swedish": "extern externe_e-mail externe_mail ekstern",
    "French": "externe extérieur courriel_externe",
    "Italian": "esterno esterna",
    "Japanese": "社外 社外メール 外部メール",
    "Korean": "외부",
    "Polish": "zewnętrzny",
    "Portuguese, Spanish": "externo correo_externo",
    "Russian": "внешний внешнее_письмо",
}
#: Marks that spam filters put before a subject, by language.
_SUSPECTED = {
    "English": "spam possible_spam probable_spam suspected_spam likely_spam junk bulk virus "
    "phishing suspicious unchecked disarmed",
    "Chinese": "垃圾邮件 垃圾郵件",
    "Japanese": "迷惑メール",
    "Korean": "스팸",
    "Russian": "спам",
}

#: A subject that has only these words does not identify a topic.
_GENERIC = {
    "English": "a an and another any anybody anyone announce announcement answer asap bug bugs "
    "comment comments email error errors feedback for from fwd good greetings hello help hey hi "
    "idea important info information introduction issue issues list mail mailing message meeting "
    "minutes morning msg my need needed new newbie news no none notice of on one our patch patches "
    "ping please pls post problem problems proposal query question questions quick re reply "
    "report reports request review rfc simple small some status subject subscribe suggestion "
    "suggestions test testing tests thank thanks that the this thx to unsubscribe untitled update "
    "updates urgent version wanted warning welcome with you your",
    "Arabic": "مساعدة سؤال مرحبا شكرا",
    "Chinese": "你好 您好 求助 问题 問題 请问 請問 帮助 幫助 谢谢 謝謝 测试 測試 补丁 "
    "无主题 無主題",
    "Czech, Slovak": "pomoc dotaz otázka ahoj problém chyba děkuji prosím",
    "Danish, Norwegian, Swedish": "hjälp hjælp hjelp fråga spørgsmål spørsmål hej hei tack tak "
    "takk fel fejl feil",
    "Dutch": "hulp vraag probleem bedankt fout geen onderwerp",
    "Finnish": "apua kysymys ongelma kiitos",
    "French": "aide question questions problème problèmes bonjour salut merci erreur bogue votre "
    "sans objet",
    "German": "hilfe frage fragen problem probleme fehler hallo danke bitte dringend ihre deine "
    "nachricht anfrage kein betreff ohne",
    "Greek": "βοήθεια ερώτηση πρόβλημα",
    "Hebrew": "עזרה שאלה שלום תודה",
    "Hungarian": "segítség kérdés probléma köszönöm",
    "Indonesian": "bantuan tanya pertanyaan masalah",
    "Italian": "aiuto domanda problema ciao grazie errore richiesta nessun oggetto",
    "Japanese": "こんにちは 質問 お願い 助けて ありがとう テスト 件名なし 無題 パッチ",
    "Korean": "안녕하세요 질문 도움 감사합니다 테스트 제목 없음 문제",
    "Polish": "pytanie witam cześć dziękuję błąd bez tematu",
    "Portuguese": "ajuda pergunta dúvida dúvidas olá oi obrigado erro sem assunto",
    "Russian, Ukrainian": "помощь помогите вопрос вопросы проблема ошибка привет здравствуйте "
    "спасибо без темы допомога питання",
    "Spanish": "ayuda pregunta problema hola gracias urgente duda consulta sin asunto su mensaje",
    "Turkish": "yardım soru merhaba teşekkürler sorun hata konu yok",
    "Vietnamese": "giúp đỡ câu hỏi",
}
_GENERIC_WORDS = frozenset(" ".join(_GENERIC.values()).casefold().split())
#: Minimum letters of a topic; wide (East Asian) letters count twice.
_LEAST_LETTERS = 4


def _any_of(words: dict[str, str]) -> str:
    return "|".join(sorted(set(" ".join(words.values()).split()))).replace("_", " ")


_COUNT = r"\.?\s*+(?:\[\d{1,4}\]|\(\d{1,4}\)|\^\d{1,4})?\s*+[:：]"
_TAG = r"(?:\[[^\]\[]{1,60}\]|[【〔「][^【】〔〕「」]{1,60}[】〕」])"
_ANY_PREFIX = rf"(?:{_any_of(_ANSWERS)}|{_any_of(_FORWARDS)}){_COUNT}"
_MARK = _any_of(_OUTSIDE | {f"{name}, suspected": words for name, words in _SUSPECTED.items()})
# *** SPAM ***, {Spam?}, (External), [EXT]:, EXTERNAL:, "External Re: x"; but "External: x" is an
# ordinary subject
_WARNING = (
    rf"(?:(?:[*#]{{1,6}}\s?+(?:{_MARK})\s?+[*#]{{1,6}}|[{{(<\[](?:{_MARK})\s?+\??[}})>\]])"
    rf"(?:\s?+[:：|-])?+|(?:{_MARK})\s?+[:：|-]?\s*+(?={_ANY_PREFIX})"
    rf"|(?-i:{_any_of(_OUTSIDE).upper()})\s?+[:：])"
)
#: A mark of a gateway or a filter.
WARNING = re.compile(_WARNING, re.I)
_PREFIX = re.compile(rf"\s*+(?:{_ANY_PREFIX}|(?P<tag>{_WARNING}|{_TAG}))", re.I)
_TAGS = re.compile(rf"(?:\s*+(?:{_WARNING}|{_TAG}))*+\s*+", re.I)
_ANSWER = re.compile(rf"(?:{_any_of(_ANSWERS)}|{_UNSURE_ANSWER}){_COUNT}", re.I)
_UNSURE = re.compile(rf"{_UNSURE_ANSWER}{_COUNT}\s*+(?=\S)", re.I)
_FORWARDED = "(fwd)"
_FORMER = re.compile(r"(?<!\s)\s*+[(\[]was\b[^\n]*+", re.I)
# [PATCH v3 2/5]: an answer to version 3 does not answer version 2
_VERSION = re.compile(r"\[[^\]\[]*\b(?:patch|rfc)[^\]\[]*\b(v\d{1,3})\b[^\]\[]*\]", re.I)
# the bracket of a patch: [PATCH 2/5], [RFC PATCH v3], [ndctl PATCH v2 02/10], [PATCHv2]
_LABEL = re.compile(r"\[[^\]\[]*\b(?:patch|rfc)(?:es|s)?(?:v\d{1,3})?\b[^\]\[]*\]", re.I)
_LABEL_VERSION = re.compile(r"(?:\b|patch|rfc)v(\d{1,3})\b", re.I)
_LABEL_NUMBER = re.compile(r"\b(\d{1,4})/(\d{1,4})\b")
_ONLY_TAG = re.compile(rf"{_WARNING}|{_TAG}", re.I)
_RENAMED = re.compile(r"(?i)[(\[]was:? |^re\. ")  # an answer with a changed subject; "Re. x"
_WORD = re.compile(r"[^\W_]+")


@lru_cache(maxsize=_KEPT)
def base_subject(subject: str) -> str:
    """Return the subject without prefixes of answers and forwards, tags and marks of gateways.

    `[HACKERS] Re: AW: Re[2]: [PATCH v3 2/5] fix x (fwd)` becomes `fix x`. A subject that has
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


@lru_cache(maxsize=_KEPT)
def is_answer(subject: str) -> bool:
    """Return whether a subject begins like an answer, after list tags; forwards do not count."""
    plain = _simplify(subject)
    tags = _TAGS.match(plain)
    return bool(_ANSWER.match(plain, tags.end() if tags else 0))


def has_prefix(subject: str) -> bool:
    """Return whether a subject has a sign that the message answers or forwards another."""
    at = 0
    while prefix := _PREFIX.match(subject, at):
        if not prefix["tag"]:
            return True
        at = prefix.end()
    return subject.rstrip().lower().endswith(_FORWARDED) or _RENAMED.search(subject) is not None


@lru_cache(maxsize=_KEPT)
def find_topic(subject: str) -> str:
    """Return the topic of a subject, for comparison, or "" if the subject says too little.

    Case, width, blanks, prefixes, list tags and `(was: ...)` make no difference. The version of a
    patch does.
    """
    topic, version = find_topic_and_version(subject)
    return f"{topic} {version}" if version else topic


def find_topic_and_version(subject: str) -> tuple[str, str]:
    """Return the two parts of a topic: for `[PATCH v2 3/5] Fix x` "fix x" and "v2"."""
    plain = _simplify(subject)
    words = base_subject(plain)
    while prefix := _UNSURE.match(words):
        words = base_subject(words[prefix.end() :])
    words = words[: former.start()] if (former := _FORMER.search(words, 1)) else words
    topic = words.casefold()
    if _ONLY_TAG.fullmatch(words) or not _says_enough(topic):
        return "", ""
    version = _VERSION.search(plain)
    return topic, version[1].casefold() if version else ""


class PatchLabel(NamedTuple):
    """[PATCH v3 2/5] in a subject: version, number (0: cover letter), total; None if missing."""

    version: int | None = None
    number: int | None = None
    total: int | None = None


def read_patch_label(subject: str) -> PatchLabel | None:
    """Return the label of a patch, its cover letter or an answer to them, or None."""
    label = _LABEL.search(_simplify(subject))
    if label is None:
        return None
    version, number = _LABEL_VERSION.search(label[0]), _LABEL_NUMBER.search(label[0])
    return PatchLabel(
        int(version[1]) if version else None,
        int(number[1]) if number else None,
        int(number[2]) if number else None,
    )


def _simplify(subject: str) -> str:
    if subject.isascii() and subject.isprintable():
        return subject[:MAX_SUBJECT]
    plain = unicodedata.normalize("NFKC", subject)
    return "".join(c if c.isprintable() else " " * c.isspace() for c in plain)[:MAX_SUBJECT]


def _says_enough(topic: str) -> bool:
    letters = sum(map(str.isalpha, topic))
    if not topic.isascii():
        letters += sum(c.isalpha() and unicodedata.east_asian_width(c) == "W" for c in topic)
    return letters >= _LEAST_LETTERS and not _GENERIC_WORDS.issuperset(_WORD.findall(topic))

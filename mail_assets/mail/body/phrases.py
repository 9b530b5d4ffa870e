"""The phrases of all languages by which mail programs announce what they quote.

The phrases are data, one file for each language in `languages/`. They come from the programs'
own translations: Thunderbird (mailnews.reply_header_* and forward_header_*), K-9 Mail
(message_compose_reply_header_fmt*) and Roundcube (mailreplyintro, originalmessage), and from
samples of Gmail, Apple Mail, Outlook and Yahoo Mail in crisp-oss/email-forward-parser.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from mail_assets.mail.body.folding import fold

_PLACEHOLDER = re.compile(r"\{(?:author|date|id)\}")
_LOST = ("?", "\ufffd")  # what archives without a charset put in place of an accented letter
_GAP = "\0"  # a placeholder once its name is of no use any more


class Template(NamedTuple):
    """A phrase with placeholders: the words that are fixed, with something between them."""

    start: str
    words: tuple[str, ...]
    end: str

    def matches(self, text: str) -> bool:
        """Tell whether a folded text is an instance; every placeholder stands for something."""
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
        """Return the longest word with blanks around it, which any instance holds; "" for none."""
        fixed = _GAP.join((self.start, *self.words, self.end))
        tokens = [token for token in fixed.split() if _GAP not in token]
        return max(tokens, key=len, default="")


class Phrases(NamedTuple):
    """What all languages say, folded."""

    attributions: dict[str, list[Template]]  # by the key of each; those without one are not ASCII
    fields: dict[str, str]  # a field's name: "from", "date", "to", "cc", "subject" or "other"
    separators: dict[str, str]  # between dashes: "original", "forwarded" or "forwarded_end"
    separator_templates: list[tuple[Template, str]]
    begin: set[str]  # alone on a line, without the colon
    starts: tuple[str, ...]  # of attributions: "on ", "am "
    ends: tuple[str, ...]  # of attributions that end in no colon

    def find_templates(self, text: str) -> list[Template]:
        """Return the attributions of which a folded text may be an instance."""
        tokens = text.split() if text.isascii() else (*text.split(), "")
        known = self.attributions
        return [template for token in tokens if token in known for template in known[token]]


@cache
def load_phrases() -> Phrases:
    """Read the files of all languages, once.

    Raises:
        ValueError: a file is no TOML or has a template without a fixed word; it names both
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
        starts=tuple(sorted({t.start for t in templates if t.start.endswith(" ")})),
        ends=tuple(sorted({t.end.strip() for t in templates if t.end[-1:] not in ":"})),
    )


def parse_template(phrase: str) -> Template:
    """Split "On {date}, {author} wrote:" into what is fixed.

    Raises:
        ValueError: nothing but punctuation is fixed
    """
    start, *words, end = fold(_PLACEHOLDER.sub(_GAP, phrase)).split(_GAP)
    words = [word for word in words if _has_letter(word)]
    if not any(_has_letter(part) for part in (start, *words, end)):
        raise ValueError(f"no word is fixed in {phrase!r}")
    return Template(start, tuple(words), end)


def _spellings(phrases: Iterable[str]) -> Iterator[str]:
    """Yield phrases as they are written, and those in Latin letters with accents lost as well."""
    for phrase in phrases:
        yield phrase
        fixed = _PLACEHOLDER.sub("", phrase)
        foreign = sum(not letter.isascii() for letter in fixed)
        if 0 < foreign * 3 < sum(map(str.isalpha, fixed)):
            for lost in _LOST:
                yield "".join(letter if letter.isascii() else lost for letter in phrase)


def _has_letter(text: str) -> bool:
    return any(character.isalpha() for character in text)


def _add_language(phrases: Phrases, language: dict[str, Any]) -> None:
    for template in map(parse_template, _spellings(language["attributions"])):
        same = phrases.attributions.setdefault(template.key(), [])
        if template not in same:
            same.append(template)
    for kind, names in language["fields"].items():
        for name in names:
            phrases.fields.setdefault(fold(name), kind)
    for kind in ("original", "forwarded", "forwarded_end"):
        for phrase in _spellings(language.get(kind, ())):
            if _PLACEHOLDER.search(phrase):
                phrases.separator_templates.append((parse_template(phrase), kind))
            else:
                phrases.separators.setdefault(fold(phrase), kind)
    phrases.begin.update(map(fold, language.get("begin", ())))

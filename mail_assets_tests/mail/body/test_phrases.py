"""Every phrase of every language, in the places where programs write it."""

import tomllib
from importlib.resources import files
from typing import Any

import pytest

from mail_assets.mail.body.phrases import load_phrases, parse_template
from mail_assets_tests.mail.kinds import letters

LANGUAGES: dict[str, dict[str, Any]] = {
    file.name.removesuffix(".toml"): tomllib.loads(file.read_text("utf-8"))
    for file in files("mail_assets.mail.body.languages").iterdir()
    if file.name.endswith(".toml")
}


def filled(template: str) -> str:
    return (
        template.replace("{author}", "Jo Roe <jo@example.org>")
        .replace("{date}", "Mon, 5 Jan 2026 10:11 AM")
        .replace("{id}", "<1@news.example.org>")
    )


def attributions(code: str) -> list[str]:
    return [filled(template) for template in LANGUAGES[code]["attributions"]]


def test_languages_of_most_archives_are_known() -> None:
    common = (
        "en de fr es pt it nl sv da nb fi pl cs sk hu ro ru uk bg el tr zh ja ko ar he id vi ca"
    )
    assert set(common.split()) <= set(LANGUAGES)
    assert len({language["name"] for language in LANGUAGES.values()}) == len(LANGUAGES)


@pytest.mark.parametrize("code", LANGUAGES)
def test_attribution_counts_only_above_a_quote(code: str) -> None:
    for line in attributions(code):
        assert letters(f"{line}\nJR> old\nmine") == "aqt", line
        assert letters(f"Hello\n\n{line}\n\n> old\nmine") == "ttatqt", line
        if not line.startswith(">"):
            assert letters(f"{line}\nmine\n\nand more") == "tttt", line


@pytest.mark.parametrize("code", LANGUAGES)
def test_each_attribution_may_be_wrapped_and_decorated(code: str) -> None:
    for line in attributions(code):
        if not line.startswith(">"):
            assert letters(f"--- {line} ---\n> old\nmine") == "aqt", line
            head, _, tail = line.partition(" <jo@")
            if tail:
                assert letters(f"{head}\n<jo@{tail}\n> old\nmine") == "aaqt", line


@pytest.mark.parametrize("code", LANGUAGES)
def test_direction_marks_and_spaces_make_no_difference(code: str) -> None:
    for line in attributions(code):
        spaced = line.removeprefix(">>>>> ").replace(":", "\u202f:").replace(" ", "\xa0")
        assert letters(f"\u200f{spaced}\u202c\n> old") == "aq", line


@pytest.mark.parametrize("code", LANGUAGES)
def test_header_block_over_unmarked_lines_quotes_the_rest(code: str) -> None:
    fields = LANGUAGES[code]["fields"]
    values = {
        "from": "Jo Roe <jo@example.org>", "date": "Monday, 5 January 2026 10:11",
        "to": "Sam Poe", "cc": "list@example.org", "subject": "Re: leases", "other": "x",
    }  # fmt: skip
    for first in fields["from"]:
        names = {kind: names[0] for kind, names in fields.items()} | {"from": first}
        block = "\n".join(f"{names[kind]}: {values[kind]}" for kind in names)
        expected = "a" * len(names) + "qqq"
        assert letters(f"Top.\n\n{block}\n\nold\nold") == f"tt{expected}"
        full_width = block.replace(": ", "：")
        assert letters(f"Top.\n\n{'_' * 32}\n{full_width}\n\nold\nold") == f"tta{expected}"
        bold = "\n".join(f"*{names[kind]}:* {values[kind]}" for kind in names)
        assert letters(f"Top.\n\n{bold}\n\nold\nold") == f"tt{expected}"


@pytest.mark.parametrize("code", LANGUAGES)
def test_separators_distinguish_answered_from_forwarded(code: str) -> None:
    language = LANGUAGES[code]
    for phrase in map(filled, language["original"]):
        for rule in (f"-----{phrase}-----", f"-------- {phrase} --------", f"--- {phrase} ---"):
            assert letters(f"Top.\n{rule}\n\nold\nold") == "taqqq"
    for phrase in map(filled, language["forwarded"]):
        rule = f"---------- {phrase} ----------"
        assert letters(f"Top.\n{rule}\n\nnews\nnews") == "tattt"
    for phrase in map(filled, language.get("forwarded_end", [])):
        assert letters(f"news\n----- {phrase} -----\nmine") == "tat"
    for phrase in map(filled, language.get("begin", [])):
        assert letters(f"FYI\n{phrase}:\n\nFrom: A\nDate: x\n\nnews") == "taaaatt"


def test_template_needs_a_word() -> None:
    with pytest.raises(ValueError, match="no fixed word"):
        parse_template("{date}, {author}:")


def test_attribution_is_found_by_a_word_of_its_own() -> None:
    unkeyed = load_phrases().attributions[""]  # tried on every text: few, without spaces
    assert len(unkeyed) < 40
    assert not any("".join((t.start, *t.words, t.end)).isascii() for t in unkeyed)

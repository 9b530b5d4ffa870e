"""Docs, pages, tool and command describe the same query language, with every field."""

import html
import re
import textwrap

import pytest
from click.testing import CliRunner

from mail_assets.cli import main
from mail_assets.search.language.description import FORMS, describe_in_markdown, describe_shortly
from mail_assets.search.language.fields import VALUE_FORMS, find_like
from mail_assets.search.language.request import KINDS, Request
from mail_assets.search.language.syntax import parse_request
from mail_assets.web.mcp import LANGUAGE
from mail_assets.web.pages import open_templates
from mail_assets_tests.conftest import REPOSITORY
from mail_assets_tests.sample_corpus import ROOT, Search

TYPED = [typed for form in FORMS for typed in form.typed]
SHOWN = '{% from "form.html" import show_language %}{{ show_language() }}'
#: Values for the placeholders of examples.
VALUES = {"NAME": "harbor-dev", "ID": ROOT, "SHA": "abcdef1"}


def test_every_field_of_the_language_is_described() -> None:
    described = {name for typed in TYPED for name in re.findall(r"\b([a-z]+):", typed)}
    assert described | {"kind"} == {*VALUE_FORMS}, "describe it in FORMS of description.py"
    assert [name for name in VALUE_FORMS if find_like(name)] == [], "it is a field itself"


def test_every_kind_is_described() -> None:
    described = {typed.partition(":")[2] for typed in TYPED if re.match("(has|is):", typed)}
    assert described == {*KINDS}, "describe it in FORMS of description.py"


@pytest.mark.parametrize("typed", TYPED)
def test_example_is_read_and_searched_as_it_stands(search: Search, typed: str) -> None:
    query = re.sub(r"(?<=:)[A-Z]+\b", lambda found: VALUES[found[0]], typed.strip("( )-") or "a")
    parsed = parse_request(Request(f"{query} lease"))
    assert parsed.notes == ()
    assert (":" in parsed.text) is False
    assert search(f"{query} lease").query == f"{query} lease"


def test_docs_page_tool_and_help_describe_all_forms() -> None:
    page = (REPOSITORY / "docs/search.md").read_text()
    written = page[page.index("| you type") :].partition("\n\n")[0].splitlines()
    rows = describe_in_markdown().splitlines()
    assert [row for row in rows if row not in written] == [], "write these into docs/search.md"
    assert written == rows
    form = open_templates().from_string(SHOWN).render()
    shown_rows = re.findall(r"<dt>(.*)</dt><dd>(.*)</dd>", html.unescape(str(form)))
    assert [one.meaning for one in FORMS] == [meaning for _, meaning in shown_rows]
    assert [*TYPED] == [
        code for codes, _ in shown_rows for code in re.findall("<code>(.*?)</code>", codes)
    ]
    assert describe_shortly(90) in LANGUAGE
    shown = CliRunner().invoke(main, ["search", "--help"]).stdout
    assert textwrap.indent(describe_shortly(78), "  ") in shown

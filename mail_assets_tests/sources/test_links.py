"""The links of a page."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.sources.links import file_name, page_links
from mail_assets_tests.sources.web import page


def test_links_are_resolved_against_the_base_element() -> None:
    html = page("a", head='<base href="b/">').decode()
    assert list(page_links(html, "http://h/c/d")) == ["http://h/c/b/a"]


def test_a_file_name_stands_behind_the_last_slash_and_before_the_query() -> None:
    assert file_name("http://h/a/x%2D1.gz?b=/c#d") == "x-1.gz"
    assert file_name("http://h/a/") == ""


@given(st.text(max_size=30))
@settings(max_examples=200)
def test_any_page_gives_links_or_none(text: str) -> None:
    html = f'<base href="{text}"><a href="{text}"><a href={text}>{text}'
    assert all(link.startswith(("http://", "https://")) for link in page_links(html, "http://h/"))

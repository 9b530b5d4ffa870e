"""The links of a page."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.sources.http_reader import file_name, page_links
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


@pytest.mark.parametrize(
    "before", ["<![if !x]>", "<![endif]-->", "<![x", "<![", "<!x>", "<?x?>", "</ x>", "<p class='"]
)
def test_a_link_is_read_behind_any_markup(before: str) -> None:
    assert list(page_links(f'{before}\n<a href="x">', "http://h/")) == ["http://h/x"]


@pytest.mark.parametrize(
    "element",
    [
        '<a href="b?c=1&amp;d=2">',
        "<A CLASS=x HREF='b?c=1&d=2'>",
        "<a\nhref = b?c=1&d=2 >",
        '<a title="href=x > y" href=" b?c=1&#38;d=2#e" href="x">',
        "<a download href=b?c=1&d=2>",
        "<!-- <a href=x> --><a href=b?c=1&d=2>",
        "<!--><a href=b?c=1&d=2>",
        "<script>'<a href=x>'</script><a href=b?c=1&d=2>",
        "<abbr href=x><a name=x><a href=''><a href=b?c=1&d=2><a href=cut",
    ],
)
def test_a_link_is_read_as_a_browser_reads_it(element: str) -> None:
    assert list(page_links(element, "http://h/a/")) == ["http://h/a/b?c=1&d=2"]


@pytest.mark.parametrize(
    "open_markup",
    ["<a ", "<a", "<a href=", "<a href='", "<a \"'", "<a/", "<!--", "<![", "</", "<?", "<script>"],
)
def test_a_page_of_what_is_left_open_is_read_in_passing(open_markup: str) -> None:
    html = "<a href=x>" + open_markup * (2**22 // len(open_markup))
    assert list(page_links(html, "http://h/")) == ["http://h/x"]

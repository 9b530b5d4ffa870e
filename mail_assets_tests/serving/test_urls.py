"""URLs: whatever an id is, its page is found under it."""

from urllib.parse import parse_qs, unquote, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from mail_assets.web.requests import (
    format_url,
    list_url,
    month_url,
    page_url,
    place_url,
    search_url,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40)
PATHS = st.lists(st.sampled_from(["x", "attachment", "1", "..", ""]), min_size=2).map("/".join)
IDS = TEXTS | PATHS


@given(IDS)
def test_the_id_is_read_from_its_url(id: str) -> None:
    parts = urlsplit(page_url("message", id))
    read = (
        parse_qs(parts.query)["id"][0] if parts.query else unquote(parts.path)[len("/message/") :]
    )
    assert read == id
    path = unquote(parts.path).split("/")
    assert not {".", "..", ""} & {*path[1:]}
    assert path[-2] != "attachment"


def test_data_is_beside_its_page() -> None:
    assert format_url("/message/a@example.org", "json") == "/message.json/a@example.org"
    assert format_url("/search?q=a%2Fb", "atom") == "/search.atom?q=a%2Fb"
    assert format_url("/lists/a/2024-03?first=100", "json") == "/lists.json/a/2024-03?first=100"


def test_a_list_and_its_months_have_urls() -> None:
    assert list_url("a/b") == "/lists/a%2Fb"
    assert month_url("dev", "2024-03") == "/lists/dev/2024-03"
    assert month_url("dev", "2024-03", 100) == "/lists/dev/2024-03?first=100"


def test_a_place_in_a_thread_is_a_fragment_of_plain_letters() -> None:
    path, mark, fragment = place_url("a@example.org").partition("#")
    assert (path, mark) == ("/thread/a@example.org", "#")
    assert fragment.isalnum()


def test_empty_parameters_are_left_out() -> None:
    assert search_url("a b", list="", offset=20) == "/search?q=a+b&offset=20"

"""URLs: whatever an id is, its page is found under it."""

from urllib.parse import parse_qs, unquote, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from mail_assets.serving.urls import data_url, page_url, search_url

IDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40)


@given(IDS)
def test_the_id_is_read_from_its_url(id: str) -> None:
    parts = urlsplit(page_url("message", id))
    read = (
        parse_qs(parts.query)["id"][0] if parts.query else unquote(parts.path)[len("/message/") :]
    )
    assert read == id
    assert not {".", "..", ""} & {*parts.path.split("/")[1:]}


def test_data_is_beside_its_page() -> None:
    assert data_url("/message/a@example.org") == "/message.json/a@example.org"
    assert data_url("/search?q=a%2Fb") == "/search.json?q=a%2Fb"
    assert data_url("/lists") == "/lists.json"


def test_empty_parameters_are_left_out() -> None:
    assert search_url("a b", list="", offset=20) == "/search?q=a+b&offset=20"

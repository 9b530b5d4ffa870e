"""Parameters, addresses of searches, and URLs of pages are read and written consistently."""

import contextlib
import datetime as dt
from urllib.parse import parse_qs, unquote, urlsplit

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mail_assets.search.language.fields import read_field
from mail_assets.search.language.request import GROUPS, MODES, SORTS, RequestError
from mail_assets.search.language.syntax import ParsedRequest, parse_request
from mail_assets.web.requests import (
    ADDRESS,
    SEARCH,
    drop_empty,
    fill_form,
    find_address,
    find_other_address,
    format_url,
    list_url,
    make_request,
    month_url,
    page_url,
    place_url,
    refine,
    search_url,
)
from mail_assets.web.responses import ServingError
from mail_assets_tests.sample_corpus import QUERY
from mail_assets_tests.web.conftest import BASE_URL


def test_empty_parameters_are_ignored() -> None:
    assert drop_empty({"q": "x", "list": "", "after": " "}) == {"q": "x"}


def test_parameters_become_a_request() -> None:
    request = make_request(
        {"q": "x", "list": "pier", "after": "2024-02", "mode": "fulltext", "offset": "20"}
    )
    assert (request.query, request.lists, request.after) == ("x", ("pier",), dt.date(2024, 2, 1))
    assert (request.mode, request.offset, request.limit) == ("fulltext", 20, 10)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"q": "x", "foo": "1"}, "parameter 'foo' is unknown"),
        ({"q": "x", "limit": "ten"}, "limit 'ten'"),
        ({"q": "x", "limit": "9" * 5000}, "limit '9999"),
        ({"q": "x", "offset": "\u0663"}, "offset"),
        ({"q": "x", "limit": "0"}, "limit 0: allowed are 1 to 100"),
        ({"q": "x", "mode": "magic"}, "mode 'magic': allowed are"),
        ({"q": "x", "after": "soon"}, "soon"),
        ({"q": "a\0b"}, "NUL"),
        ({"q": "x" * 200_000}, "characters"),
    ],
)
def test_wrong_parameter_is_named(given: dict[str, str], said: str) -> None:
    with pytest.raises((RequestError, ServingError), match=said):
        make_request(*SEARCH.read_values(given))


WORDS = st.sampled_from(
    ["lease", "\u00e9t\u00e9", '"lock timeout"', "vacu*", "-windows", "a or b", "(x -y)", "c:\\new",
     "f(x", "from:tom", "-from:tom", "list:a", "list:b", "after:2y", "date:2024", "has:patch",
     "sort:date", "limit:20", "offset:30", "thread:<a@b>", "mode:semantic", "group:message",
     "<a@b>", '"', "%26&=+#?", "score:0.5"]
)  # fmt: skip
DAYS = st.sampled_from(["", "2024", "2024-03", "2024-02-29", "2y", "10d", " 2023 "])
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
GIVEN = st.fixed_dictionaries(
    {},
    optional={
        "q": st.lists(WORDS | TEXT, max_size=5).map(" ".join),
        "list": st.sampled_from(["", "a", "b", "odd name", 'a"b']),
        "after": DAYS,
        "before": st.sampled_from(["", "2030", "2025-01-01"]),
        "sender": st.sampled_from(["", "tom", "Tom Lane", '"Tom"', "<tom>"]) | TEXT,
        "mode": st.sampled_from(["", *MODES]),
        "group": st.sampled_from(["", *GROUPS]),
        "sort": st.sampled_from(["", *SORTS]),
        "limit": st.sampled_from(["", "10", "25"]),
        "offset": st.sampled_from(["", "0", "10", "020"]),
    },
)


def read(parameters: dict[str, str]) -> ParsedRequest:
    return parse_request(make_request(drop_empty(parameters)))


def parameters_of(address: str) -> dict[str, str]:
    query = parse_qs(urlsplit(address).query, keep_blank_values=True)
    return {name: value for name, [value] in query.items()}


def asked(parsed: ParsedRequest) -> object:
    options = ("mode", "group", "sort", "limit", "offset", "min_score")
    return (
        parsed.text,
        {*parsed.clauses},
        [str(getattr(parsed.request, name)) for name in options],
    )


@given(GIVEN)
@settings(max_examples=200)
def test_address_repeats_the_search_and_is_canonical(given: dict[str, str]) -> None:
    with contextlib.suppress(RequestError, ServingError):
        parsed = read(given)
        address = find_address(parsed)
        assert find_other_address(given) in (address, "/", None)
        assert asked(read(parameters_of(address))) == asked(parsed)
        assert find_other_address(parameters_of(address)) is None
        assert parameters_of(address).keys() <= ADDRESS


@given(GIVEN)
@settings(max_examples=200)
def test_form_leads_to_the_same_address(given: dict[str, str]) -> None:
    with contextlib.suppress(RequestError, ServingError):
        parsed = read(given)
        first = find_address(parsed, offset=0)
        assert find_address(read(fill_form(parsed))) == first


@pytest.mark.parametrize(
    ("given", "form"),
    [
        ({"q": "list:a lease from:tom"}, {"q": "lease", "list": "a", "sender": "tom"}),
        ({"q": "lease", "after": "2024-03"}, {"q": "lease", "after": "2024-03-01"}),
        ({"q": "lease sort:date", "offset": "20"}, {"q": "lease", "sort": "date"}),
        ({"q": "lease (list:a or list:b)"}, {"q": "(list:a OR list:b) lease"}),
        ({"q": "lease limit:20"}, {"q": "limit:20 lease"}),
        ({"q": "-list:a"}, {"q": "-list:a"}),
    ],
)
def test_form_fields_take_their_parts_of_the_query(
    given: dict[str, str], form: dict[str, str]
) -> None:
    shown = fill_form(read(given))
    options = {"mode": "hybrid", "group": "conversation", "sort": "relevance", "near": ""}
    assert shown == options | form


@pytest.mark.parametrize(
    ("query", "name", "value", "refined"),
    [
        ("lease", "list", "a", "list:a lease"),
        ("list:a lease", "list", "b", "list:b lease"),
        ("(list:a or list:b) lease", "list", "b", "list:b lease"),
        ("-list:a lease", "list", "b", "-list:a list:b lease"),
        ("date:2024 lease", "date", "2024-03", "date:2024-03-01..2024-03-31 lease"),
        ("kind:patch lease", "kind", "reply", "kind:patch kind:reply lease"),
        ("lease offset:20", "kind", "reply", "kind:reply lease"),
    ],
)
def test_refining_replaces_exclusive_conditions(
    query: str, name: str, value: str, refined: str
) -> None:
    address = refine(read({"q": query}), read_field(name, value, None))
    assert parameters_of(address) == {"q": refined}


@pytest.mark.parametrize(
    "path",
    [
        f"/search?list=harbor-dev&q={QUERY}&after=&before=&sender=&mode=hybrid&group=conversation",
        f"/search?q={QUERY}+list:harbor-dev",
        f"/search?q={QUERY}&list=harbor-dev&offset=0",
    ],
)
def test_equivalent_searches_redirect_to_one_address(public: httpx.Client, path: str) -> None:
    forged = {"x-forwarded-host": "evil.example"}
    response = public.get(path, headers=forged, follow_redirects=False)
    assert (response.status_code, response.content) == (303, b"")
    wanted = public.get(path.replace("/search?", "/search.json?")).json()["html_url"]
    assert response.headers["location"] == wanted
    page = public.get(wanted)
    assert page.status_code == 200
    assert f'<link rel="canonical" href="{BASE_URL}{wanted.replace("&", "&amp;")}">' in page.text
    assert "<option selected>harbor-dev</option>" in page.text


def test_relative_days_become_dates(public: httpx.Client) -> None:
    year = dt.datetime.now(dt.UTC).year - 2
    [address] = {
        public.get(path, follow_redirects=False).headers["location"].partition("-")[0]
        for path in ("/search?q=lease&after=2y", "/search?q=lease+after:2y")
    }
    assert abs(int(address.partition("after%3A")[2]) - year) <= 1


@pytest.mark.parametrize("kind", [".json", ".atom", ".mbox.gz"])
def test_formats_for_programs_are_not_redirected(public: httpx.Client, kind: str) -> None:
    path = f"/search{kind}?q={QUERY}&list=&mode=fulltext"
    assert public.get(path, follow_redirects=False).status_code == 200


@pytest.mark.parametrize("path", ["/search", "/search?q=", "/search?q=&list=&mode="])
def test_empty_search_redirects_home(public: httpx.Client, path: str) -> None:
    assert public.get(path, follow_redirects=False).headers["location"] == "/"


def test_links_to_searches_are_canonical(public: httpx.Client) -> None:
    page = public.get("/search", params={"q": f"{QUERY} date:2024"}).text
    links = {part.partition('"')[0] for part in page.split('href="')[1:]}
    searches = sorted(link.replace("&amp;", "&") for link in links if link.startswith("/search?"))
    assert len(searches) > 10
    assert [link for link in searches if find_other_address(parameters_of(link))] == []


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40)
PATHS = st.lists(st.sampled_from(["x", "attachment", "1", "..", ""]), min_size=2).map("/".join)
IDS = TEXTS | PATHS


@given(IDS)
def test_id_is_read_from_its_url(id: str) -> None:
    parts = urlsplit(page_url("message", id))
    read = (
        parse_qs(parts.query)["id"][0] if parts.query else unquote(parts.path)[len("/message/") :]
    )
    assert read == id
    path = unquote(parts.path).split("/")
    assert not {".", "..", ""} & {*path[1:]}
    assert path[-2] != "attachment"


@pytest.mark.parametrize(
    ("url", "written"),
    [
        (format_url("/message/a@example.org", "json"), "/message.json/a@example.org"),
        (format_url("/search?q=a%2Fb", "atom"), "/search.atom?q=a%2Fb"),
        (format_url("/lists/a/2024-03?first=100", "json"), "/lists.json/a/2024-03?first=100"),
        (list_url("a/b"), "/lists/a%2Fb"),
        (month_url("dev", "2024-03"), "/lists/dev/2024-03"),
        (month_url("dev", "2024-03", 100), "/lists/dev/2024-03?first=100"),
        (search_url("a b", list="", offset=20), "/search?q=a+b&offset=20"),
    ],
)
def test_url_is_encoded_and_has_what_was_given(url: str, written: str) -> None:
    assert url == written


def test_place_url_has_a_plain_fragment() -> None:
    path, mark, fragment = place_url("a@example.org").partition("#")
    assert (path, mark) == ("/thread/a@example.org", "#")
    assert fragment.isalnum()

"""A web developer's day: from /openapi.json to the last message, by JSON, mailbox and feed."""

import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
import pytest
from jsonschema import Draft202012Validator

from mail_assets.web.requests import is_page
from mail_assets_tests.kept_worlds import standing_world
from mail_assets_tests.sample_corpus import QUERY
from mail_assets_tests.web.conftest import fill, serving_world
from mail_assets_tests.web.readings import follow_feed, split_mailbox
from mail_assets_tests.web.test_openapi import open_validator
from mail_assets_tests.world import World, mail

#: Options of the generator for media types that it does not know.
CONFIG = """\
content_type_overrides:
  application/gzip: application/octet-stream
  application/mbox: application/octet-stream
  application/atom+xml: text/plain
post_hooks: []
"""


class Api:
    """A client that knows only the description of the API."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.described: dict[str, Any] = client.get("/openapi.json").json()
        self.used: set[str] = set()
        self._paths = {
            operations["get"]["operationId"]: path
            for path, operations in self.described["paths"].items()
        }
        self._checks: dict[str, Draft202012Validator] = {}

    def call(self, operation: str, **values: str) -> httpx.Response:
        path = self._paths[operation]
        names = {one["name"] for one in self._operation(path)["parameters"] if one["in"] == "path"}
        return self.follow(
            path.format(**{name: values[name] for name in names}),
            {name: value for name, value in values.items() if name not in names},
        )

    def follow(self, url: str, params: dict[str, str] | None = None) -> httpx.Response:
        """Follow a link; check the response by the description of its operation."""
        response = self.client.get(url, params=params or None)
        operation = self._operation(self._find_path(urlsplit(url).path))
        self.used.add(operation["operationId"])
        content = operation["responses"][str(response.status_code)]["content"]
        kind = response.headers["content-type"].partition(";")[0]
        schema = content[kind].get("schema", {})
        if kind == "application/json" and "$ref" in schema:
            self._validator(schema["$ref"]).validate(response.json())
        return response

    def _operation(self, path: str) -> dict[str, Any]:
        operation: dict[str, Any] = self.described["paths"][path]["get"]
        return operation

    def _find_path(self, path: str) -> str:
        """Return the described path of a URL: the match with the fewest parameters."""
        parts = path.split("/")
        fitting = [
            one
            for one in self.described["paths"]
            if len(pattern := one.split("/")) == len(parts)
            and all(
                theirs.startswith("{") or theirs == ours
                for theirs, ours in zip(pattern, parts, strict=True)
            )
        ]
        return str(min(fitting, key=lambda one: one.count("{")))

    def _validator(self, reference: str) -> Draft202012Validator:
        if reference not in self._checks:
            name = reference.rpartition("/")[2]
            self._checks[reference] = open_validator(self.described, name)
        return self._checks[reference]


def read_pages(api: Api, first: httpx.Response) -> Iterator[dict[str, Any]]:
    page = first.json()
    yield page
    while page["next"]:
        page = api.follow(page["next"]).json()
        yield page


def test_description_leads_to_the_last_message(public: httpx.Client, tmp_path: Path) -> None:
    api = Api(public)
    lists = api.call("list_lists").json()["lists"]
    assert len(lists) > 2
    for one in lists:
        archive = api.follow(one["url"]).json()
        found, links = [], []
        for month in archive["archives"]:
            posts = [
                post for page in read_pages(api, api.follow(month["url"])) for post in page["posts"]
            ]
            found += [post["message_id"] for post in posts]
            links += [post["url"] for post in posts]
        newest = api.follow(links[-1]).json()
        assert newest["message_id"] == found[-1]
        folder = tmp_path / one["name"]
        folder.mkdir()
        mailbox = api.follow(archive["mbox_url"]).content
        assert len(split_mailbox(mailbox, folder)) == archive["messages"] >= len(found)
        fed = [
            unquote(id.removeprefix("mid:")) for id in follow_feed(api.follow, archive["atom_url"])
        ]
        assert {id.partition("#text-")[0] for id in fed} == {*found}
        asked = {"q": f"list:{one['name']}", "group": "message", "sort": "oldest", "limit": "7"}
        pages = [*read_pages(api, api.call("search", **asked))]
        assert [hit["message_id"] for page in pages for hit in page["hits"]][-1] in found
        assert {hit["message_id"] for page in pages for hit in page["hits"]} | {
            copy for page in pages for hit in page["hits"] for copy in hit["copies"]
        } == {*found}
        assert {page["facets"]["total"] for page in pages} == {len({*found})}
        assert pages[-1]["end"] == "all"


def list_links(document: object) -> Iterator[tuple[str, str]]:
    if isinstance(document, list):
        for one in document:
            yield from list_links(one)
    elif isinstance(document, dict):
        for key, value in document.items():
            is_link = key in ("url", "next", "previous") or key.endswith("_url")
            if is_link and value is not None:
                yield key, value
            elif key == "pages":
                yield from ((key, one) for one in value)
            elif key not in ("parameters", "facets", "explain", "months"):
                yield from list_links(value)


def test_every_link_leads_to_what_is_described(public: httpx.Client) -> None:
    """Each link to data or a file in the archive is an operation, and its data fit the schema."""
    api = Api(public)
    waiting = deque(["/lists.json", f"/search.json?q={QUERY}&limit=3"])
    seen, pages = {*waiting}, set[str]()
    while waiting:
        url = waiting.popleft()
        response = api.follow(url)
        if not response.headers["content-type"].startswith("application/json"):
            assert response.status_code in (200, 403), url  # attachments can be unpublished
            continue
        assert response.status_code == 200, url
        for key, link in list_links(response.json()):
            if key == "html_url":
                assert is_page(link)
                pages.add(link)
                continue
            assert not is_page(link), (url, key, link)
            if link not in seen:
                seen.add(link)
                waiting.append(link)
    for page in sorted(pages)[::7]:
        assert public.get(page).headers["content-type"].startswith("text/html")
    used = {"list_lists", "get_list", "get_month", "get_message", "get_thread", "search"}
    files = {"get_list_mailbox", "get_month_feed", "get_thread_mailbox", "search_feed"}
    assert api.used >= used | files


def test_every_operation_and_field_is_described(public: httpx.Client) -> None:
    api = public.get("/openapi.json").json()
    operations = [one for path in api["paths"].values() for one in path.values()]
    ids = [one["operationId"] for one in operations]
    assert len({*ids}) == len(ids)
    for one in operations:
        assert one["summary"]
        assert one["description"]
        assert all(parameter["description"] for parameter in one.get("parameters", ()))
    for name, schema in api["components"]["schemas"].items():
        for field, about in schema.get("properties", {}).items():
            assert about["description"], (name, field)


DAYS = ["2024-01-29", "2024-03-30", "2024-05-31", "2024-02-29", "2y"]
NO_DAYS = ["2024-02-30", "2024-04-31", "2023-02-29", "2024-13", "2024-00-01"]


@pytest.mark.parametrize("day", [*DAYS, *NO_DAYS])
def test_description_and_server_agree_on_days(public: httpx.Client, day: str) -> None:
    parameters = Api(public).described["paths"]["/search.json"]["get"]["parameters"]
    [schema] = [one["schema"] for one in parameters if one["name"] == "after"]
    assert Draft202012Validator(schema).is_valid(day) == (day in DAYS)
    status = public.get("/search.json", params={"after": day}).status_code
    assert status == (200 if day in DAYS else 400)


@contextmanager
def generate_client(server: httpx.Client, folder: Path) -> Iterator[str]:
    """Yield the name of a package that openapi-python-client writes from a description."""
    name = f"client_of_{folder.name}"
    (folder / "openapi.json").write_bytes(server.get("/openapi.json").content)
    (folder / "config.yml").write_text(CONFIG)
    command = ["generate", "--path", "openapi.json", "--config", "config.yml", "--meta", "none"]
    command += ["--output-path", name, "--fail-on-warning"]
    subprocess.run(
        [sys.executable, "-m", "openapi_python_client", *command],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    sys.path.insert(0, str(folder))
    try:
        yield name
    finally:
        sys.path.remove(str(folder))


@pytest.mark.parametrize(
    "asked",
    [
        {"sort": "date"},
        {"sort": "oldest"},
        {"q": "whale", "sort": "date"},
        {"q": "whale", "mode": "fulltext"},
    ],
)
def test_search_continues_after_600_hits(crowded: httpx.Client, asked: dict[str, str]) -> None:
    for group in ("message", "conversation"):
        api = Api(crowded)
        params = {"q": "list:harbor", "limit": "100", "group": group, **asked}
        pages = [api.call("search", **params).json()]
        while pages[-1]["next"]:
            pages.append(crowded.get(pages[-1]["next"]).json())
        rows = [
            one["message_id"] if group == "message" else one["thread_id"]
            for page in pages
            for one in page["hits" if group == "message" else "conversations"]
        ]
        assert len(rows) == len({*rows}) == len(MANY)
        assert len({(p["facets"]["total"], p["facets"]["at_least"]) for p in pages}) == 1
        assert pages[-1]["end"] == "all"
        page, back = pages[-1], [pages[-1]["hits"]]
        while page["previous"]:
            page = crowded.get(page["previous"]).json()
            back.insert(0, page["hits"])
        assert back == [one["hits"] for one in pages]


#: Messages without parents, each with its own words.
MANY = [
    mail(
        f"m{n}",
        f"whale number{n} swims by the quay{n} at dawn{n}.",
        subject=f"swim {n}",
        date=f"{n % 28 + 1} Mar 2024 {n % 24:02}:{n % 60:02}:00 +0000",
    )
    for n in range(620)
]
crowd = standing_world(lambda world: fill(world, *MANY))


@pytest.fixture(scope="module")
def crowded(crowd: World) -> Iterator[httpx.Client]:
    with serving_world(crowd) as client:
        yield client

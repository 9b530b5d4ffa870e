"""Documents and paths match the description of the API."""

import re
from typing import Any, get_args

import httpx
import pytest
from jsonschema import Draft202012Validator
from starlette.routing import Route

from mail_assets.web.document_types import Code
from mail_assets.web.parameters import SEARCH_PARAMETERS
from mail_assets.web.privacy import HIDDEN, SHOWN
from mail_assets_tests.sample_corpus import QUERY, REPOSITORY, ROOT, Corpus
from mail_assets_tests.web.conftest import fill, open_app, serving_world
from mail_assets_tests.world import World, mail

DOCUMENTS = [
    ("SearchDocument", f"/search.json?q={QUERY}&list=harbor-dev"),
    ("SearchDocument", "/search.json?q=lease&group=message&limit=1&offset=1"),
    ("SearchDocument", '/search.json?q=lease "zzgarble"'),
    ("MessageDocument", f"/message.json/{ROOT}"),
    ("MessageDocument", f"/message.json?id={ROOT}"),
    ("ThreadDocument", f"/thread.json/{ROOT}"),
    ("SimilarDocument", f"/similar.json/{ROOT}"),
    ("ListsDocument", "/lists.json"),
    ("ListMonthsDocument", "/lists.json/harbor-dev"),
    ("MonthDocument", "/lists.json/harbor-dev/2024-03?first=1"),
    ("OpenPatchesDocument", "/patches.json/harbor-dev/open"),
    ("AppliedDocument", "/patches.json/harbor-dev/applied"),
    ("ErrorDocument", "/message.json/nobody@example.org"),
    ("ErrorDocument", "/lists.json/nowhere"),
    ("ErrorDocument", "/lists.json/harbor-dev/1999-01"),
]


def read_api(client: httpx.Client) -> dict[str, Any]:
    api: dict[str, Any] = client.get("/openapi.json").json()
    return api


def open_validator(api: dict[str, Any], name: str) -> Draft202012Validator:
    """Return a validator that refuses documents with wrong or unknown keys."""
    schemas = api["components"]["schemas"]
    closed = {
        one: schema | ({"additionalProperties": False} if "properties" in schema else {})
        for one, schema in schemas.items()
    }
    schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": closed}}
    return Draft202012Validator(schema)


def check(api: dict[str, Any], name: str, document: object) -> None:
    open_validator(api, name).validate(document)


@pytest.mark.parametrize(("name", "path"), DOCUMENTS)
def test_documents_match_their_schemas(
    public: httpx.Client, private: httpx.Client, name: str, path: str
) -> None:
    for client in (public, private):
        check(read_api(client), name, client.get(path).json())


@pytest.mark.parametrize("addresses", [HIDDEN, SHOWN])
def test_attachments_ghosts_and_empty_texts_match_schemas(world: World, addresses: str) -> None:
    attached = (
        "\n--b\nContent-Type: text/plain\n\nwhale\n--b\nContent-Type: text/x-patch\n"
        'Content-Disposition: attachment; filename="a.patch"\n\n--- a\n+++ b\n--b--\n'
    )
    mixed = "Content-Type: multipart/mixed; boundary=b"
    fill(
        world,
        mail("a", attached, headers=mixed, references="<ghost@example.org>"),
        mail("b", "", subject="", references="<a@example.org>"),
    )
    with serving_world(world, addresses) as client:
        api, documents = read_api(client), {}
        for id in ("a@example.org", "b@example.org", "ghost@example.org"):
            documents[id] = client.get(f"/thread.json/{id}").json()
            check(api, "ThreadDocument", documents[id])
        for id in ("a@example.org", "b@example.org"):
            check(api, "MessageDocument", client.get(f"/message.json/{id}").json())
    [ghost, post, _] = documents["a@example.org"]["posts"]
    assert ghost["is_ghost"]
    assert post["attachments"]


#: Paths for robots and browsers, not for programs.
MACHINES = {"/robots.txt", "/sitemap.xml", "/opensearch.xml", "/favicon.ico"}


def test_every_path_for_programs_is_described(corpus: Corpus, public: httpx.Client) -> None:
    with open_app(corpus.settings) as app:
        paths = {
            route.path.replace(":path}", "}") for route in app.routes if isinstance(route, Route)
        }
    served = {path for path in paths if "." in path or "/attachment/" in path} - MACHINES
    assert "/lists.json/{list}/{month}" in served
    assert served <= read_api(public)["paths"].keys()


def test_every_error_code_is_documented_and_described(public: httpx.Client) -> None:
    codes = {*get_args(Code)}
    schemas = read_api(public)["components"]["schemas"]
    assert {*schemas["ErrorDetail"]["properties"]["code"]["enum"]} == codes
    text = (REPOSITORY / "docs/serving.md").read_text()
    rows = re.findall(r"^\| [45]\d\d.*", text, re.MULTILINE)
    assert {*re.findall(r"`(\w+)`", "\n".join(rows))} == codes


def test_answer_matches_its_schema(public: httpx.Client) -> None:
    asked = {"Accept": "application/json"}
    answer = public.post("/answer", json={"q": QUERY}, headers=asked).json()
    check(read_api(public), "AnswerDocument", answer)


def test_private_keys_are_described_only_if_shown(
    public: httpx.Client, private: httpx.Client
) -> None:
    assert "from_email" not in public.get("/openapi.json").text
    hit = read_api(private)["components"]["schemas"]["Hit"]
    assert "from_email" in hit["required"]


def test_every_parameter_and_list_is_described(public: httpx.Client) -> None:
    api = read_api(public)
    parameters = {one["name"]: one for one in api["paths"]["/search.json"]["get"]["parameters"]}
    assert parameters.keys() == SEARCH_PARAMETERS.keys()
    assert "harbor-dev" in parameters["list"]["schema"]["enum"]


def test_described_paths_and_methods_exist(public: httpx.Client) -> None:
    for path, methods in read_api(public)["paths"].items():
        url = path.format(id=ROOT, number=1, list="harbor-dev", month="2024-03", sha="4e64")
        if "get" in methods:
            asked = {one["name"] for one in methods["get"]["parameters"]}
            given = {"id": ROOT} if "id" in asked and "{id}" not in path else {}
            assert public.get(url, params=given).status_code in (200, 404), path
            answer = public.put(url)
            assert answer.status_code == 405
            allowed = {one.lower() for one in answer.headers["allow"].split(", ")}
            assert allowed - {"head"} == methods.keys()

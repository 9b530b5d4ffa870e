"""The description of the API: what it promises is what is served."""

from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from mail_assets.serving.parameters import SEARCH_PARAMETERS
from mail_assets_tests.sample_corpus import QUERY, ROOT

DOCUMENTS = {
    "SearchDocument": f"/search.json?q={QUERY}&list=harbor-dev",
    "MessageDocument": f"/message.json/{ROOT}",
    "ThreadDocument": f"/thread.json/{ROOT}",
    "SimilarDocument": f"/similar.json/{ROOT}",
    "ListsDocument": "/lists.json",
    "ErrorDocument": "/message.json/nobody@example.org",
}


def read_api(client: httpx.Client) -> dict[str, Any]:
    api: dict[str, Any] = client.get("/openapi.json").json()
    return api


def check(api: dict[str, Any], name: str, document: object) -> None:
    schema = {"$ref": f"#/components/schemas/{name}", "components": api["components"]}
    Draft202012Validator(schema).validate(document)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_are_as_they_are_described(
    public: httpx.Client, private: httpx.Client, name: str
) -> None:
    for client in (public, private):
        check(read_api(client), name, client.get(DOCUMENTS[name]).json())


def test_an_answer_is_as_it_is_described(public: httpx.Client) -> None:
    asked = {"Accept": "application/json"}
    answer = public.post("/answer", json={"q": QUERY}, headers=asked).json()
    check(read_api(public), "AnswerDocument", answer)


def test_keys_of_addresses_are_described_only_where_they_are_shown(
    public: httpx.Client, private: httpx.Client
) -> None:
    assert "from_email" not in public.get("/openapi.json").text
    hit = read_api(private)["components"]["schemas"]["Hit"]
    assert "from_email" in hit["required"]


def test_every_parameter_and_list_is_named(public: httpx.Client) -> None:
    api = read_api(public)
    parameters = {one["name"]: one for one in api["paths"]["/search.json"]["get"]["parameters"]}
    assert parameters.keys() == SEARCH_PARAMETERS.keys()
    assert "harbor-dev" in parameters["list"]["schema"]["enum"]


def test_every_path_leads_somewhere(public: httpx.Client) -> None:
    for path, methods in read_api(public)["paths"].items():
        url = path.format(id=ROOT, number=1)
        if "get" in methods:
            assert public.get(url).status_code in (200, 404), path
            answer = public.put(url)
            assert answer.status_code == 405
            allowed = {one.lower() for one in answer.headers["allow"].split(", ")}
            assert allowed - {"head"} == methods.keys()

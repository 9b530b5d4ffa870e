"""Every route checks every parameter by the schema that describes it."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mail_assets.search.language.request import MAX_QUERY
from mail_assets_tests.sample_corpus import ROOT

#: Statuses for valid values: the place can be empty, or not published.
FITS = {200, 403, 404, 410}
#: Statuses for invalid values.
REFUSED = {400, 404}
JSON, FORM = "application/json", "application/x-www-form-urlencoded"
#: Valid values of required parameters.
GIVEN = {"id": ROOT, "list": "harbor-dev", "month": "2024-03", "number": "1", "sha": "4e646fa490ba"}
#: A question with a quick answer.
ASKED = {"q": "zzgarble", "mode": "fulltext"}


class Place(NamedTuple):
    """A parameter of a route, its location, and its schema."""

    method: str
    path: str
    where: str
    name: str
    schema: dict[str, Any]
    needed: dict[str, str]  # other required parameters

    def send(self, client: httpx.Client, value: str) -> int:
        """Send a value; return the status."""
        path, others = self.path, dict(self.needed)
        for name in [*others]:
            if f"{{{name}}}" in path:
                path = path.replace(f"{{{name}}}", quote(others.pop(name), safe=""))
        if self.where == "path":
            path = path.replace(f"{{{self.name}}}", quote(value, safe=""))
            return client.get(path, params=others).status_code
        values = {**others, self.name: value}
        if self.where == "query":
            return client.get(path, params=values).status_code
        headers = {"accept": JSON}
        if self.where == JSON:
            return client.post(path, json=values, headers=headers).status_code
        return client.post(path, data=values, headers=headers).status_code

    def is_valid(self, value: str) -> bool:
        """Return True if a text fits the schema."""
        is_number = self.schema["type"] == "integer" and value.isascii() and value.isdigit()
        whole = {"pattern": self.schema.get("pattern", "").replace("$", r"\Z")}  # as in ECMA 262
        valid: bool = Draft202012Validator(self.schema | whole).is_valid(
            int(value) if is_number else value
        )
        return valid


@pytest.fixture(scope="module")
def places(public: httpx.Client) -> list[Place]:
    """All parameters in the description of the API."""
    return [*list_places(public)]


def list_places(client: httpx.Client) -> Iterator[Place]:
    for path, operations in client.get("/openapi.json").json()["paths"].items():
        for method, operation in operations.items():
            parameters = operation.get("parameters", [])
            needed = {one["name"] for one in parameters if one.get("required")}
            for one in parameters:
                name, where = one["name"], one["in"]
                others = {other: GIVEN[other] for other in needed - {name}}
                yield Place(method, path, where, name, one["schema"], others)
            for kind, body in operation.get("requestBody", {}).get("content", {}).items():
                for name, schema in body["schema"]["properties"].items():
                    others = {one: value for one, value in ASKED.items() if one != name}
                    yield Place(method, path, kind, name, schema, others)


def list_values(schema: dict[str, Any]) -> Iterator[str]:
    yield from ("", " ", "0", "-1", "1.5", "x", "x\0y", "\u0663", "é", "a/b")
    yield from (" 2023 ", "2024-02-30")
    if schema["type"] == "integer":
        least, most = schema["minimum"], schema["maximum"]
        yield from map(str, (least, most, most + 1, 10 * most))
    for one in schema.get("enum", ()):
        yield from (one, f"{one}s", one.upper())
    if "maxLength" in schema:
        yield from ("0" * schema["maxLength"], "0" * (schema["maxLength"] + 1))
        yield from ("é" * schema["maxLength"], '"' * (schema["maxLength"] + 1))


def check(client: httpx.Client, place: Place, value: str) -> None:
    if place.where == "path" and value.strip(".") == "":
        return  # another path
    status = place.send(client, value)
    fits = place.is_valid(value)
    about = (place[:4], value[:50], len(value), status, fits)
    assert status in (FITS if fits else REFUSED), about


def check_bounds(client: httpx.Client, places: list[Place], *more: str) -> None:
    seen = []
    for place in places:
        values = [*dict.fromkeys([*more, *list_values(place.schema)])]
        known = (place.where, place.name, place.schema)
        # elsewhere one that is too long or too large, and some others: all come from one table
        for value in [*values[:3], *values[-2:]] if known in seen else values:
            check(client, place, value)
        seen.append(known)


def test_every_bound_of_a_parameter_is_checked(public: httpx.Client, places: list[Place]) -> None:
    assert {one.where for one in places} == {"path", "query", JSON, FORM}
    check_bounds(public, places)


def test_bounds_of_senders_are_checked_if_addresses_are_shown(private: httpx.Client) -> None:
    senders = [place for place in list_places(private) if place.name == "sender"]
    check_bounds(private, senders, "ann@example.org")


@given(st.data())
@settings(max_examples=150)
def test_any_value_of_a_parameter_is_checked(
    public: httpx.Client, places: list[Place], data: st.DataObject
) -> None:
    place = data.draw(st.sampled_from(places))
    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    if "pattern" in place.schema:
        texts |= st.from_regex(place.schema["pattern"])
    check(public, place, data.draw(texts))


@pytest.mark.parametrize("kind", ["search", "search.json", "search.atom"])
def test_long_search_with_filters_leads_on(public: httpx.Client, kind: str) -> None:
    asked = {"q": f'"{"x" * 1988}" OR harbor', "list": "harbor-dev", "after": "2024", "limit": "1"}
    assert len(asked["q"]) == MAX_QUERY
    response = public.get(f"/{kind}", params=asked)
    assert response.status_code == 200
    if kind == "search":
        assert response.url.params["list"] == "harbor-dev"
    if kind == "search.json":
        page = response.json()
        assert page["facets"]["total"] > 1
        for link in (page["url"], page["next"], page["atom_url"], page["html_url"]):
            assert public.get(link).status_code == 200
        assert public.get(page["next"]).json()["facets"] == page["facets"]


def test_question_as_long_as_a_query_is_answered_and_no_longer(public: httpx.Client) -> None:
    for kind in ("json", "data"):
        for more, status in (("", 200), ("x", 400), ('"', 400), (" -y", 400)):
            q = f"-{'x' * (MAX_QUERY - 1)}{more}"
            response = public.post("/answer", **{kind: {"q": q, "mode": "fulltext"}})  # type: ignore[arg-type]
            assert response.status_code == status

"""The description of the API for programs (OpenAPI 3.1, https://spec.openapis.org/oas/v3.1.0).

It is made from what the server itself uses: the table of parameters, the dataclasses of responses.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from mail_assets import __version__
from mail_assets.search.request import MAX_QUERY
from mail_assets.search.response import Response
from mail_assets.serving.document_types import (
    AnswerDocument,
    ErrorDocument,
    ListsDocument,
    MessageDocument,
    SearchPage,
    ThreadDocument,
)
from mail_assets.serving.parameters import QUESTION_PARAMETERS, SEARCH_PARAMETERS, Parameter

Schema = dict[str, Any]

_REFERENCE = "#/components/schemas/{model}"
#: Texts that PostgreSQL takes.
_NO_NUL = r"^[^\x00]*$"
#: Names, where nobody is told whether an address is right.
_NO_ADDRESS = r"^[^\x00@]*$"
_ERRORS = {
    "400": "a parameter is wrong",
    "403": "this is not published",
    "404": "there is no such thing; allowed are the nearest ids",
    "410": "the message was forgotten, or its archive has removed it",
    "413": "the request is too large",
    "415": "the request is of another type",
    "429": "too many requests; come again after Retry-After seconds",
    "503": "not at the moment; come again after Retry-After seconds",
    "504": "the search took too long",
}


class Archive(NamedTuple):
    """What differs from archive to archive: lists, keys that no document has, an id to try."""

    lists: Sequence[str]
    private_keys: Collection[str]
    example_id: str


def describe_api(base_url: str, archive: Archive) -> Schema:
    """Return the description of an archive's API."""
    questions = _list_parameters({"q": QUESTION_PARAMETERS["q"]}, archive)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mail_assets",
            "version": __version__,
            "description": "Search in the archives of mailing lists. Keys are added, and neither "
            "renamed nor removed within a major version.",
        },
        "servers": [{"url": base_url}],
        "paths": {
            **_search_paths(archive),
            **_message_paths(archive.example_id),
            "/lists.json": _get("The lists and their months", _data("ListsDocument"), []),
            "/answer": {
                **_get("The form that asks a question", _content("text/html"), questions),
                "post": _answer(archive),
            },
            "/health": _get("Whether the process answers", _content("text/plain"), []),
            "/ready": _get("Whether searches are answered", _content("text/plain"), []),
        },
        "components": {"schemas": _schemas(archive.private_keys)},
    }


def _search_paths(archive: Archive) -> Schema:
    parameters = _list_parameters(SEARCH_PARAMETERS, archive)
    return {
        "/search.json": _get("Search", _data("SearchDocument"), parameters),
        "/search.atom": _get(
            "A feed of the newest messages", _content("application/atom+xml"), parameters
        ),
        "/search.mbox.gz": _get(
            "The hits as a mailbox (mboxrd)", _content("application/gzip"), parameters
        ),
    }


def _list_parameters(table: Mapping[str, Parameter], archive: Archive) -> list[Schema]:
    return [
        {
            "name": name,
            "in": "query",
            "description": one.description,
            "schema": _value_schema(name, one, archive),
        }
        for name, one in table.items()
    ]


def _message_paths(example: str) -> Schema:
    id: Schema = {
        "name": "id",
        "in": "path",
        "required": True,
        "description": "a Message-ID, percent-encoded, with or without angle brackets",
        "example": example,
        "schema": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_QUERY,
            "pattern": r"^[^\x00]+$",
        },
    }
    number = {
        "name": "number",
        "in": "path",
        "required": True,
        "example": 1,
        "schema": {"type": "integer", "minimum": 1, "maximum": 999_999_999},
    }
    gzip, atom = _content("application/gzip"), _content("application/atom+xml")
    return {
        "/message.json/{id}": _get("A message", _data("MessageDocument"), [id]),
        "/message.mbox/{id}": _get("A message as a mailbox", _content("application/mbox"), [id]),
        "/message/{id}/attachment/{number}": _get(
            "An attachment",
            {**_content("text/plain"), **_content("application/octet-stream")},
            [id, number],
        ),
        "/thread.json/{id}": _get("A page of a conversation", _data("ThreadDocument"), [id]),
        "/thread.atom/{id}": _get("A feed of a conversation", atom, [id]),
        "/thread.mbox.gz/{id}": _get("A whole conversation as a mailbox", gzip, [id]),
        "/similar.json/{id}": _get("What is nearest in meaning", _data("SimilarDocument"), [id]),
    }


def _answer(archive: Archive) -> Schema:
    fields = {name: _value_schema(name, one, archive) for name, one in QUESTION_PARAMETERS.items()}
    fields["q"] |= {"minLength": 1, "pattern": r"^[^\x00]*[^\s\x00][^\x00]*$"}
    question: Schema = {"type": "object", "properties": fields, "required": ["q"]}
    question["additionalProperties"] = False
    kinds = ("application/json", "application/x-www-form-urlencoded")
    answer = {**_data("AnswerDocument"), "text/event-stream": {}, **_content("text/html")}
    return {
        "summary": "Answer a question from the archive, as events, data or a page",
        "requestBody": {
            "required": True,
            "content": {kind: {"schema": question} for kind in kinds},
        },
        "responses": {"200": {"description": "the answer", "content": answer}, **_errors()},
    }


def _get(summary: str, content: Schema, parameters: Sequence[Schema]) -> Schema:
    responses = {
        "200": {"description": summary, "content": content},
        "304": {"description": "what the client has is the newest"},
        **_errors(),
    }
    return {"get": {"summary": summary, "parameters": [*parameters], "responses": responses}}


def _errors() -> Schema:
    content = _data("ErrorDocument") | _content("text/html") | _content("text/plain")
    return {
        status: {"description": description, "content": content}
        for status, description in _ERRORS.items()
    }


def _data(name: str) -> Schema:
    return {"application/json": {"schema": {"$ref": _REFERENCE.format(model=name)}}}


def _content(media_type: str) -> Schema:
    return {media_type: {"schema": {"type": "string"}}}


def _value_schema(name: str, parameter: Parameter, archive: Archive) -> Schema:
    if parameter.bounds:
        least, most = parameter.bounds
        return {"type": "integer", "minimum": least, "maximum": most}
    if choices := tuple(archive.lists) if name == "list" else parameter.choices:
        return {"type": "string", "enum": ["", *choices]}  # as a form that is not filled in
    if name == "sender" and "from_email" in archive.private_keys:
        return {"type": "string", "maxLength": MAX_QUERY, "pattern": _NO_ADDRESS}
    return {"type": "string", "maxLength": MAX_QUERY, "pattern": parameter.pattern or _NO_NUL}


def _schemas(private: Collection[str]) -> Schema:
    """Return the schemas of all documents by name."""
    schemas: Schema = {}
    for type_ in (
        Response, SearchPage, MessageDocument, ThreadDocument, ListsDocument, AnswerDocument,
        ErrorDocument,
    ):  # fmt: skip
        schema = TypeAdapter(type_).json_schema(ref_template=_REFERENCE, mode="serialization")
        schemas |= schema.pop("$defs", {}) | {type_.__name__: schema}
    for schema in schemas.values():
        _leave_out(schema, private)
    _add(schemas["Hit"], {"url": {"type": "string"}})
    sentence = {"$ref": _REFERENCE.format(model="SentenceDocument")}
    # with group=thread only
    schemas["Hit"]["properties"]["summary"] = {"type": "array", "items": sentence}
    response, page = schemas.pop("Response"), schemas.pop("SearchPage")
    schemas["SimilarDocument"] = response
    schemas["SearchDocument"] = {
        **response,
        "properties": response["properties"] | page["properties"],
        "required": [*response["required"], *page["required"]],
    }
    return schemas


def _leave_out(schema: Schema, private: Collection[str]) -> None:
    for name in private:
        schema.get("properties", {}).pop(name, None)
    if "required" in schema:
        schema["required"] = [name for name in schema["required"] if name not in private]


def _add(schema: Schema, properties: Mapping[str, Schema]) -> None:
    schema["properties"] |= properties
    schema["required"] += [*properties]

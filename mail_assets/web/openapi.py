"""Describe the API to programs (OpenAPI 3.1, https://spec.openapis.org/oas/v3.1.0).

The description is generated from the table of parameters and the types of documents.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from mail_assets import __version__
from mail_assets.month import PATTERN
from mail_assets.search.language.request import MAX_NAME, MAX_QUERY
from mail_assets.search.response import Response
from mail_assets.web.document_types import (
    AnswerDocument,
    ErrorDocument,
    ListsDocument,
    MessageDocument,
    MonthDocument,
    SearchPage,
    ThreadDocument,
)
from mail_assets.web.requests import QUESTION_PARAMETERS, SEARCH_PARAMETERS, Parameter

Schema = dict[str, Any]

#: Reference to the schema of a document.
_REFERENCE = "#/components/schemas/{model}"
#: PostgreSQL takes no NUL in texts.
_NO_NUL = r"^[^\x00]*$"
#: Where addresses are hidden, a sender is found by the name alone.
_NO_ADDRESS = r"^[^\x00@]*$"
_MONTH = f"^{PATTERN}$"
_ERRORS = {
    "400": "a parameter is wrong",
    "403": "this is not published, or a page of another site asks for it",
    "404": "not found; `allowed` has the nearest ids, lists or months",
    "408": "the request did not arrive in time",
    "410": "the message was forgotten, or its archive has removed it",
    "413": "the request is too large",
    "415": "the request has an unsupported media type",
    "421": "the server does not answer to the name in Host",
    "429": "too many requests; try again after Retry-After seconds",
    "500": "a fault of the program",
    "503": "unavailable; try again after Retry-After seconds",
    "504": "the search took too long",
}


class Archive(NamedTuple):
    """The lists of an archive, the keys that its documents lack, and an id for examples."""

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
            "description": "Search in the archives of mailing lists. Within a major version keys "
            "may be added; none is renamed or removed.",
        },
        "servers": [{"url": base_url}],
        "paths": {
            **_search_paths(archive),
            **_message_paths(archive.example_id),
            **_list_paths(archive.lists),
            "/openapi.json": _get(
                "This description", {"application/json": {"schema": {"type": "object"}}}, []
            ),
            "/answer": {
                **_get("The form that asks a question", _content("text/html"), questions),
                "post": _answer(archive),
            },
            "/health": _get("Liveness: the process answers", _content("text/plain"), []),
            "/ready": _get("Readiness: the database answers", _content("text/plain"), []),
        },
        "components": {"schemas": _describe_documents(archive.private_keys)},
    }


def _search_paths(archive: Archive) -> Schema:
    parameters = _list_parameters(SEARCH_PARAMETERS, archive)
    return {
        "/search.json": _get("Search", _data("SearchDocument"), parameters),
        "/search.atom": _get(
            "A feed of the newest messages, one entry each",
            _content("application/atom+xml"),
            parameters,
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
    """Return the paths that take an id, each twice: the id in the path, or in the query string."""
    id: Schema = {
        "name": "id",
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
    in_path, in_query = id | {"in": "path"}, id | {"in": "query"}
    number = _in_path("number", 1, {"type": "integer", "minimum": 1, "maximum": 999_999_999})
    gzip, atom = _content("application/gzip"), _content("application/atom+xml")
    file = {**_content("text/plain"), **_content("application/octet-stream")}
    texts: list[Schema] = [
        {
            "name": "list",
            "in": "query",
            "description": "the list whose text is wanted, if several texts claim the id",
            "schema": {"type": "string", "maxLength": MAX_NAME, "pattern": _NO_NUL},
        },
        {
            "name": "text",
            "in": "query",
            "description": "the number of the text that is wanted: 1 arrived first",
            "schema": {"type": "integer", "minimum": 0, "maximum": 999_999_999},
        },
    ]
    paths: Schema = {}
    for path, summary, content in (
        ("/message.json", "A message", _data("MessageDocument")),
        ("/message.mbox", "A message as a mailbox", _content("application/mbox")),
        ("/thread.json", "A page of a conversation", _data("ThreadDocument")),
        ("/thread.atom", "A feed of a conversation", atom),
        ("/thread.mbox.gz", "A whole conversation as a mailbox", gzip),
        ("/similar.json", "The messages nearest in meaning", _data("SimilarDocument")),
    ):
        wanted = texts if path.startswith("/message") else []
        paths[f"{path}/{{id}}"] = _get(summary, content, [in_path, *wanted])
        paths[path] = _get(f"{summary}, by any id", content, [in_query, *wanted])
    attachment = "/attachment/{number}"
    paths[f"/message/{{id}}{attachment}"] = _get("An attachment", file, [in_path, number, *texts])
    paths[f"/message{attachment}"] = _get(
        "An attachment, by any id", file, [in_query, number, *texts]
    )
    return paths


def _list_paths(lists: Sequence[str]) -> Schema:
    [example, *_] = *lists, "list"
    name = _in_path("list", example, {"type": "string", "enum": [*lists]})
    month = _in_path("month", "2024-03", {"type": "string", "pattern": _MONTH})
    first = {
        "name": "first",
        "in": "query",
        "description": "the number of the first message, from 0",
        "schema": {"type": "integer", "minimum": 0, "maximum": 9_999_999},
    }
    path = "/lists.json"
    return {
        path: _get("The lists and their months", _data("ListsDocument"), []),
        f"{path}/{{list}}": _get("The months of a list", _data("ListDocument"), [name]),
        f"{path}/{{list}}/{{month}}": _get(
            "A page of a month", _data("MonthDocument"), [name, month, first]
        ),
    }


def _in_path(name: str, example: object, schema: Schema) -> Schema:
    return {"name": name, "in": "path", "required": True, "example": example, "schema": schema}


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
        "304": {"description": "not modified: the client has the newest version"},
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
        return {"type": "string", "enum": ["", *choices]}  # an empty form field
    if name == "sender" and "from_email" in archive.private_keys:
        return {"type": "string", "maxLength": MAX_QUERY, "pattern": _NO_ADDRESS}
    return {"type": "string", "maxLength": MAX_QUERY, "pattern": parameter.pattern or _NO_NUL}


def _describe_documents(private: Collection[str]) -> Schema:
    schemas: Schema = {}
    for type_ in (
        Response, SearchPage, MessageDocument, ThreadDocument, ListsDocument, MonthDocument,
        AnswerDocument, ErrorDocument,
    ):  # fmt: skip
        schema = TypeAdapter(type_).json_schema(ref_template=_REFERENCE, mode="serialization")
        schemas |= schema.pop("$defs", {}) | {type_.__name__: schema}
    for schema in schemas.values():
        _leave_out(schema, private)
    for name in ("Hit", "NewerCopy", "Conversation", "FirstMessage", "Reading"):
        schemas[name]["properties"]["url"] = {"type": "string"}
        schemas[name]["required"].append("url")
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

"""Description of the API for programs (OpenAPI 3.1, https://spec.openapis.org/oas/v3.1.0).

It is generated from the paths (paths.py) with their parameters and types of documents, and from the
descriptions of fields (fields.py). Links are described as requests.py writes them in JSON.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import Response as HttpResponse
from starlette.routing import Route

from mail_assets import __version__
from mail_assets.search.response import Response
from mail_assets.web.document_types import AnswerDocument, ErrorDocument, SearchPage
from mail_assets.web.fields import describe_field
from mail_assets.web.limits import Cost, PathCost
from mail_assets.web.parameters import ASKED_PARAMETERS, Parameter, Table

Schema = dict[str, Any]

#: Reference to the schema of a document.
_REFERENCE = "#/components/schemas/{model}"
#: Pattern of `sender` if addresses are hidden: then only names can be searched.
_NO_ADDRESS = r"^[^\x00@]*$"
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
#: Media types whose content is bytes and not text.
_BINARY = frozenset({"application/gzip", "application/mbox", "application/octet-stream"})
#: Documents whose `url` is that of a file, which has no page.
_FILES = frozenset({"AttachedFile", "PostAttachment"})
#: Parts of a response whose `url` documents.py adds.
_LINKED = ("Hit", "NewerCopy", "Conversation", "FirstMessage", "Reading")
#: Parts of a response whose `namesake` documents.py adds.
_SENDERS = ("Hit", "FirstMessage")
#: Names of documents that are not those of their types: parts of a response are left out or added.
_NAMES: Mapping[type, str] = {Response: "SimilarDocument", SearchPage: "SearchDocument"}
_ABOUT = (
    "Search in the archives of mailing lists. Start with `/lists.json` or `/search.json` and "
    "follow the links, which are paths on this server: `url`, `next` and `previous` lead to JSON, "
    "`html_url` to the page for people, `mbox_url` to a mailbox and `atom_url` to a feed. `next` "
    "goes on to the last message. Within a major version keys may be added; none is renamed or "
    "removed."
)


class Archive(NamedTuple):
    """The lists of an archive, the keys that its documents lack, and an id for examples."""

    lists: Sequence[str]
    private_keys: Collection[str]
    example_id: str


def _content(*results: type | str) -> Schema:
    """Return the content of a response: documents by their types, other content by media type."""
    content: Schema = {}
    for one in results:
        if isinstance(one, type):
            name = _NAMES.get(one, one.__name__)
            content["application/json"] = {"schema": {"$ref": _REFERENCE.format(model=name)}}
        elif one == "application/json":
            content[one] = {"schema": {"type": "object"}}
        else:
            binary = {"format": "binary"} if one in _BINARY else {}
            content[one] = {"schema": {"type": "string", **binary}}
    return content


class About(NamedTuple):
    """Description of a path for programs: the name of its operation, a summary and a text.

    `any_id` is the summary of the same path without `/{id}`, if it differs. `headers` are those of
    the response by name, and `moved` says when it is a redirect.
    """

    id: str
    summary: str
    text: str
    any_id: str = ""
    headers: Mapping[str, str] = MappingProxyType({})
    moved: str = ""


Endpoint = Callable[[Request], Awaitable[HttpResponse]]


class Path(NamedTuple):
    """A path: its endpoint, its parameters, and its description for programs, if it has one.

    `results` are types of documents, and media types of other content. A path with an id has a twin
    without it, for ids that no path can hold: then `?id=` has the id. `tag` groups the paths. Paths
    with the same first part have the same cost.
    """

    path: str
    endpoint: Endpoint
    table: Table
    results: tuple[type | str, ...] = ()
    about: About | None = None
    tag: str = ""
    methods: Sequence[str] = ("GET",)
    cost: PathCost = Cost.read

    def list_routes(self) -> Iterator[Route]:
        """Yield the routes of the path and of its twin."""
        for path in dict.fromkeys((self.path, self.path.replace("/{id:path}", ""))):
            yield Route(path, self.endpoint, methods=[*self.methods])


_ANY_ID = "An id that no path can hold is given here."


def describe_api(paths: Iterable[Path], base_url: str, archive: Archive) -> Schema:
    """Return the description of an archive's API."""
    described = [(path, about) for path in paths if (about := path.about)]
    types = [one for path, _ in described for one in path.results if isinstance(one, type)]
    operations: Schema = {}
    for path, about in described:
        url = path.path.replace(":path}", "}")
        operations[url] = {"get": _get(path, url, about, archive)}
        if "POST" in path.methods:
            operations[url]["post"] = _answer(archive)
        if "{id}" in url:
            # the file of a message is no page of its id
            text = about.text if "{number}" in url else f"{about.text} {_ANY_ID}"
            summary = about.any_id or f"{about.summary}, by any id"
            twin = about._replace(id=f"{about.id}_by_id", summary=summary, text=text)
            url = url.replace("/{id}", "")
            operations[url] = {"get": _get(path, url, twin, archive)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "mail_assets", "version": __version__, "description": _ABOUT},
        "servers": [{"url": base_url, "description": "the archive"}],
        "tags": [
            {"name": "search", "description": "find messages"},
            {"name": "messages", "description": "messages and threads by any of their ids"},
            {"name": "lists", "description": "lists and their months"},
            {"name": "patches", "description": "commits, and patches in all their versions"},
            {"name": "answers", "description": "answers from the mail, with citations"},
            {"name": "service", "description": "the server itself"},
        ],
        "paths": operations,
        "components": {"schemas": _describe_documents(types, archive.private_keys)},
    }


def _narrow(name: str, parameter: Parameter, archive: Archive | None) -> Schema:
    if archive and name == "list" and archive.lists:
        empty = () if parameter.least else ("",)  # a form has empty fields
        return {"type": "string", "enum": [*empty, *archive.lists]}
    if archive and name == "sender" and "from_email" in archive.private_keys:
        return {**parameter.schema, "pattern": _NO_ADDRESS}
    return parameter.schema


def _answer(archive: Archive) -> Schema:
    fields = {
        name: _narrow(name, one, archive) | {"description": one.description}
        for name, one in ASKED_PARAMETERS.items()
    }
    question: Schema = {"type": "object", "properties": fields, "required": ["q"]}
    question["additionalProperties"] = False
    kinds = ("application/json", "application/x-www-form-urlencoded")
    answer = {**_content(AnswerDocument), "text/event-stream": {}, **_content("text/html")}
    return {
        "operationId": "answer",
        "tags": ["answers"],
        "summary": "Answer a question from the archive",
        "description": "`Accept` chooses the form: events (the default), data or a page.",
        "requestBody": {
            "required": True,
            "description": "the question",
            "content": {kind: {"schema": question} for kind in kinds},
        },
        "responses": {"200": {"description": "the answer", "content": answer}, **_errors()},
    }


def _get(path: Path, url: str, about: About, archive: Archive) -> Schema:
    [a_list, *_] = *archive.lists, "list"
    examples: Mapping[str, Mapping[str, object]] = {
        "messages": {"id": archive.example_id, "number": 1},
        "lists": {"list": a_list, "month": "2024-03"},
        "patches": {"sha": "4e646fa490ba", "id": archive.example_id, "list": a_list},
    }
    given = examples.get(path.tag, {})
    # any list's text of a message may be asked for
    known = archive if path.tag in ("search", "lists", "patches") else None
    answered: Schema = {"description": about.summary, "content": _content(*path.results)}
    if about.headers:
        answered["headers"] = _headers(about.headers)
    responses = {
        "200": answered,
        "304": {"description": "not modified: the client has the newest version"},
        **_errors(),
    }
    if about.moved:
        responses["303"] = {
            "description": about.moved,
            "headers": _headers({"Location": "its address"}),
        }
    return {
        "operationId": about.id,
        "tags": [path.tag],
        "summary": about.summary,
        "description": about.text,
        "parameters": [
            {
                "name": name,
                "in": "path" if f"{{{name}}}" in url else "query",
                **({"required": True} if one.least else {}),
                "description": one.description,
                **({"example": given[name]} if name in given else {}),
                "schema": _narrow(name, one, known),
            }
            for name, one in path.table.items()
        ],
        "responses": responses,
    }


def _headers(about: Mapping[str, str]) -> Schema:
    return {
        name: {"description": text, "schema": {"type": "string"}} for name, text in about.items()
    }


def _errors() -> Schema:
    content = _content(ErrorDocument, "text/html", "text/plain")
    return {
        status: {"description": description, "content": content}
        for status, description in _ERRORS.items()
    }


def _describe_documents(results: Sequence[type], private: Collection[str]) -> Schema:
    schemas: Schema = {}
    for type_ in dict.fromkeys((Response, *results, AnswerDocument, ErrorDocument)):
        schema = TypeAdapter(type_).json_schema(ref_template=_REFERENCE, mode="serialization")
        schemas |= schema.pop("$defs", {}) | {type_.__name__: schema}
    for schema in schemas.values():
        for name in private:
            schema.get("properties", {}).pop(name, None)
        if "required" in schema:
            schema["required"] = [name for name in schema["required"] if name not in private]
    for name in _LINKED:
        schemas[name]["properties"]["url"] = {"type": "string"}
        schemas[name]["required"].append("url")
    for name in _SENDERS:
        schemas[name]["properties"]["namesake"] = {"type": "string"}
        schemas[name]["required"].append("namesake")
    response, page = schemas.pop("Response"), schemas.pop("SearchPage")
    # rows of other pages are published only as cursors
    for name in ("next_row", "previous_row"):
        del response["properties"][name]
    del schemas["After"]
    schemas[_NAMES[Response]] = response
    schemas[_NAMES[SearchPage]] = {
        **response,
        "properties": response["properties"] | page["properties"],
        "required": [*response["required"], *page["required"]],
    }
    return {name: _finish(name, schema) for name, schema in schemas.items()}


def _finish(name: str, schema: Schema) -> Schema:
    if "properties" not in schema:
        return schema
    fields = dict(schema["properties"])
    required = [*schema.get("required", ())]
    if "url" in fields and name not in _FILES:
        fields["html_url"] = fields["url"]
        required.append("html_url")
    described = {}
    for one, field in fields.items():
        is_time = one.endswith("_at") and field.get("type") == "string"
        described[one] = {
            **{key: value for key, value in field.items() if key != "title"},
            "description": describe_field(name, one),
            **({"format": "date-time"} if is_time else {}),
        }
    return {**schema, "title": name, "properties": described, "required": required}

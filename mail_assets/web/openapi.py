"""Description of the API for programs (OpenAPI 3.1, https://spec.openapis.org/oas/v3.1.0).

It is generated from the table of parameters (parameters.py), the types of documents, and the
descriptions of their fields (fields.py). Links are described as requests.py writes them in JSON.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from mail_assets import __version__
from mail_assets.search.response import Response
from mail_assets.web.document_types import (
    AnswerDocument,
    ErrorDocument,
    ListMonthsDocument,
    ListsDocument,
    MessageDocument,
    MonthDocument,
    SearchPage,
    ThreadDocument,
)
from mail_assets.web.fields import describe_field
from mail_assets.web.parameters import (
    ASKED_PARAMETERS,
    ATTACHMENT,
    COMMIT,
    CURSOR,
    FIRST,
    ID,
    LIST,
    MONTH_OF_LIST,
    QUESTION_PARAMETERS,
    SEARCH_PARAMETERS,
    SERIES,
    TEXT_OF_ID,
    Parameter,
    Table,
)
from mail_assets.web.patch_types import (
    AppliedDocument,
    CommitDocument,
    OpenPatchesDocument,
    SeriesDocument,
)

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


def _data(name: str) -> Schema:
    return {"application/json": {"schema": {"$ref": _REFERENCE.format(model=name)}}}


def _content(media_type: str) -> Schema:
    binary = {"format": "binary"} if media_type in _BINARY else {}
    return {media_type: {"schema": {"type": "string", **binary}}}


class Operation(NamedTuple):
    """A GET request: path, name, summary, result and parameters.

    An id that does not fit into a path is a parameter of the path without `/{id}`. `any_id` is the
    summary of that request, if it differs.
    """

    path: str
    id: str
    summary: str
    content: Schema
    table: Table
    description: str
    any_id: str = ""
    headers: Mapping[str, str] = MappingProxyType({})


_GZIP, _ATOM, _TEXT = map(_content, ("application/gzip", "application/atom+xml", "text/plain"))
_ANY_ID = "An id that no path can hold is given here."
_NEWEST = "The newest messages; the link `next` of the feed leads to the older ones."
_WHOLE = (
    "mboxrd in gzip, the oldest month first, as many messages as the JSON says. "
    "X-Export-Messages of the last one is their number: without it a part is missing."
)

#: The GET requests that have parameters, by tag.
_OPERATIONS: Mapping[str, tuple[Operation, ...]] = {
    "search": (
        Operation(
            "/search.json",
            "search",
            "Search",
            _data("SearchDocument"),
            SEARCH_PARAMETERS,
            "Conversations with their best messages, or messages; without parameters the newest. "
            "`next` leads through all that match: by date to the last message, by relevance until "
            "what follows is too far from the question, or the ranking ends; `end` says which.",
        ),
        Operation(
            "/search.atom",
            "search_feed",
            "A feed of a search",
            _ATOM,
            SEARCH_PARAMETERS,
            "The newest messages that have every word, an entry for each; `sort=relevance` gives "
            "the best. The link `next` of the feed leads to the following ones.",
        ),
        Operation(
            "/search.mbox.gz",
            "search_mailbox",
            "The messages of a search as a mailbox",
            _GZIP,
            SEARCH_PARAMETERS,
            "mboxrd in gzip. X-Export-Total is the number of messages that match, "
            "X-Export-Truncated is true if they are more than the 10,000 that a mailbox of a "
            "search has at most. The last message has both fields too, and X-Export-Messages, the "
            "number of messages.",
            headers={
                "X-Export-Total": "the number of messages that match, `at least N` if more may",
                "X-Export-Truncated": "some of them are left out",
            },
        ),
    ),
    "messages": (
        Operation(
            "/message.json/{id}",
            "get_message",
            "A message",
            _data("MessageDocument"),
            TEXT_OF_ID,
            "Its text, its place in the thread and in its lists, and other texts of its id.",
        ),
        Operation(
            "/message.mbox/{id}",
            "get_message_mailbox",
            "A message as a mailbox",
            _content("application/mbox"),
            TEXT_OF_ID,
            "mboxrd. If addresses are hidden, it is written from the stored fields; otherwise it "
            "has the original bytes.",
        ),
        Operation(
            "/thread.json/{id}",
            "get_thread",
            "A page of a thread",
            _data("ThreadDocument"),
            ID,
            "The page that has the message of the id, in the order of the tree.",
        ),
        Operation(
            "/thread.atom/{id}",
            "get_thread_feed",
            "A feed of a thread",
            _ATOM,
            ID | CURSOR,
            _NEWEST,
        ),
        Operation(
            "/thread.mbox.gz/{id}",
            "get_thread_mailbox",
            "A whole thread as a mailbox",
            _GZIP,
            ID,
            "mboxrd in gzip, the oldest message first. X-Export-Messages of the last one is "
            "their number.",
        ),
        Operation(
            "/similar.json/{id}",
            "get_similar",
            "The messages nearest in meaning to one",
            _data("SimilarDocument"),
            ID,
            "The best ten.",
        ),
        Operation(
            "/message/{id}/attachment/{number}",
            "get_attachment",
            "An attachment",
            {**_TEXT, **_content("application/octet-stream")},
            ATTACHMENT,
            "Where addresses are hidden, only plain text, with its addresses masked.",
        ),
    ),
    "lists": (
        Operation(
            "/lists.json",
            "list_lists",
            "The lists",
            _data("ListsDocument"),
            {},
            "All lists with their months.",
        ),
        Operation(
            "/lists.json/{list}",
            "get_list",
            "A list",
            _data("ListMonthsDocument"),
            LIST,
            "Its months, with links to each.",
        ),
        Operation(
            "/lists.json/{list}/{month}",
            "get_month",
            "A page of a month",
            _data("MonthDocument"),
            MONTH_OF_LIST | FIRST,
            "Its messages, thread by thread; `next` leads to the rest, `later_url` to the next "
            "month.",
        ),
        *(
            one
            for path, kind, table in (
                ("{list}", "list", LIST),
                ("{list}/{month}", "month", MONTH_OF_LIST),
            )
            for one in (
                Operation(
                    f"/lists.mbox.gz/{path}",
                    f"get_{kind}_mailbox",
                    f"A {kind} as a mailbox",
                    _GZIP,
                    table,
                    _WHOLE,
                ),
                Operation(
                    f"/lists.atom/{path}",
                    f"get_{kind}_feed",
                    f"A feed of a {kind}",
                    _ATOM,
                    table | CURSOR,
                    _NEWEST,
                ),
            )
        ),
    ),
    "patches": (
        Operation(
            "/commits.json/{sha}",
            "get_commit",
            "A commit, and the mail that decided it",
            _data("CommitDocument"),
            COMMIT,
            "Its mails best first, each with its evidence; where none is certain, `reason` says "
            "why. Digits that begin one commit are redirected to it, those of several are an error "
            "that names them in `allowed`.",
        ),
        Operation(
            "/series.json/{id}",
            "get_series",
            "A series of patches in all its versions",
            _data("SeriesDocument"),
            SERIES,
            "The state of each change, with its evidence. With `old` and `new` also the difference "
            "between two of its postings.",
            "A series of patches, by any id",
        ),
        Operation(
            "/patches.json/{list}/open",
            "list_open_patches",
            "The open patches of a list",
            _data("OpenPatchesDocument"),
            LIST | CURSOR,
            "The newest first. A page reads 1,000 messages: it may be short and have a `next`.",
        ),
        Operation(
            "/patches.json/{list}/applied",
            "list_applied",
            "What was applied",
            _data("AppliedDocument"),
            LIST | CURSOR,
            "The newest commits with a certain mail. A page reads 1,000 commits.",
        ),
        Operation(
            "/patches.atom/{list}/applied",
            "get_applied_feed",
            "A feed of what was applied",
            _ATOM,
            LIST | CURSOR,
            "The newest commits with a certain mail; the link `next` leads to the older ones.",
        ),
    ),
}
_OWN = Operation(
    "/openapi.json",
    "describe_api",
    "This description",
    {"application/json": {"schema": {"type": "object"}}},
    {},
    "OpenAPI 3.1.",
)
_FORM = Operation(
    "/answer",
    "show_answer_form",
    "The form that asks a question",
    _content("text/html"),
    QUESTION_PARAMETERS,
    "A page for people. POST asks the question.",
)
_HEALTH = (
    Operation("/health", "check_health", "Liveness", _TEXT, {}, "The process answers."),
    Operation("/ready", "check_ready", "Readiness", _TEXT, {}, "The database answers too."),
)


def describe_api(base_url: str, archive: Archive) -> Schema:
    """Return the description of an archive's API."""
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
        "paths": {
            **_list_paths(archive),
            _OWN.path: _get("service", _OWN),
            _FORM.path: {**_get("answers", _FORM), "post": _answer(archive)},
            **{one.path: _get("service", one) for one in _HEALTH},
        },
        "components": {"schemas": _describe_documents(archive.private_keys)},
    }


def _list_paths(archive: Archive) -> Schema:
    [a_list, *_] = *archive.lists, "list"
    examples: Mapping[str, Mapping[str, object]] = {
        "search": {},
        "messages": {"id": archive.example_id, "number": 1},
        "lists": {"list": a_list, "month": "2024-03"},
        "patches": {"sha": "4e646fa490ba", "id": archive.example_id, "list": a_list},
    }
    paths: Schema = {}
    for tag, operations in _OPERATIONS.items():
        known = None if tag == "messages" else archive  # any list's text may be asked for
        for one in operations:
            paths[one.path] = _get(tag, one, known, examples[tag])
            if "{id}" in one.path:
                is_file = one.table is ATTACHMENT
                twin = one._replace(
                    path=one.path.replace("/{id}", ""),
                    id=f"{one.id}_by_id",
                    summary=one.any_id or f"{one.summary}, by any id",
                    description=one.description if is_file else f"{one.description} {_ANY_ID}",
                )
                paths[twin.path] = _get(tag, twin, known, examples[tag])
    paths["/commits.json/{sha}"]["get"]["responses"]["303"] = {
        "description": "the digits begin one commit: Location has its address",
        "headers": {"Location": {"description": "its address", "schema": {"type": "string"}}},
    }
    return paths


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
    answer = {**_data("AnswerDocument"), "text/event-stream": {}, **_content("text/html")}
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


def _get(
    tag: str,
    operation: Operation,
    archive: Archive | None = None,
    examples: Mapping[str, object] = MappingProxyType({}),
) -> Schema:
    answered: Schema = {"description": operation.summary, "content": operation.content}
    if operation.headers:
        answered["headers"] = {
            name: {"description": about, "schema": {"type": "string"}}
            for name, about in operation.headers.items()
        }
    responses = {
        "200": answered,
        "304": {"description": "not modified: the client has the newest version"},
        **_errors(),
    }
    described = {
        "operationId": operation.id,
        "tags": [tag],
        "summary": operation.summary,
        "description": operation.description,
        "parameters": [
            {
                "name": name,
                "in": "path" if f"{{{name}}}" in operation.path else "query",
                **({"required": True} if one.least else {}),
                "description": one.description,
                **({"example": examples[name]} if name in examples else {}),
                "schema": _narrow(name, one, archive),
            }
            for name, one in operation.table.items()
        ],
        "responses": responses,
    }
    return {"get": described}


def _errors() -> Schema:
    content = _data("ErrorDocument") | _content("text/html") | _content("text/plain")
    return {
        status: {"description": description, "content": content}
        for status, description in _ERRORS.items()
    }


def _describe_documents(private: Collection[str]) -> Schema:
    schemas: Schema = {}
    for type_ in (
        Response, SearchPage, MessageDocument, ThreadDocument, ListsDocument, ListMonthsDocument,
        MonthDocument, CommitDocument, SeriesDocument, OpenPatchesDocument, AppliedDocument,
        AnswerDocument, ErrorDocument,
    ):  # fmt: skip
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
    schemas["SimilarDocument"] = response
    schemas["SearchDocument"] = {
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

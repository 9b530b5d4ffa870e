"""The schemas of documents, for the description of the API: made from the types of documents."""

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import TypeAdapter

from mail_assets.search.response import Response
from mail_assets.serving.document_types import (
    AnswerDocument,
    ErrorDocument,
    MessageDocument,
    SearchPage,
    ThreadDocument,
)
from mail_assets.serving.list_types import ListsDocument, MonthDocument

Schema = dict[str, Any]

#: Where the description has the schema of a document.
REFERENCE = "#/components/schemas/{model}"


def describe_documents(private: Collection[str]) -> Schema:
    """Return the schemas of all documents by name."""
    schemas: Schema = {}
    for type_ in (
        Response, SearchPage, MessageDocument, ThreadDocument, ListsDocument, MonthDocument,
        AnswerDocument, ErrorDocument,
    ):  # fmt: skip
        schema = TypeAdapter(type_).json_schema(ref_template=REFERENCE, mode="serialization")
        schemas |= schema.pop("$defs", {}) | {type_.__name__: schema}
    for schema in schemas.values():
        _leave_out(schema, private)
    for name in ("Hit", "NewerCopy"):
        _add(schemas[name], {"url": {"type": "string"}})
    sentence = {"$ref": REFERENCE.format(model="SentenceDocument")}
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

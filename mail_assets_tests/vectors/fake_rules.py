"""Refusals of the fake S3 Vectors API, with the errors of each flavour."""

from __future__ import annotations

import json
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Json = dict[str, Any]
Flavour = Literal["aws", "supabase"]

MAX_BODY = 20 << 20
INDEX_NAME_LENGTH = {"aws": 63, "supabase": 45}
TOP_K = {"aws": 10_000, "supabase": 100}
# Each value of $in is one, in an index of mode ENHANCED; Supabase states no limit.
MAX_CONSTRAINTS = 100
INDEXES = {"aws": 10_000, "supabase": 20}

# What is wrong with a request -> HTTP status and code, by flavour.
ERRORS: dict[str, dict[str, tuple[int, str]]] = {
    "missing": {"aws": (404, "NotFoundException"), "supabase": (404, "NotFoundException")},
    "exists": {"aws": (409, "ConflictException"), "supabase": (409, "ConflictException")},
    "shape": {"aws": (400, "ValidationException"), "supabase": (400, "InvalidRequest")},
    "value": {"aws": (400, "ValidationException"), "supabase": (400, "InvalidParameter")},
    "quota": {
        "aws": (402, "ServiceQuotaExceededException"),
        "supabase": (400, "S3VectorMaxIndexesExceeded"),
    },
    "auth": {"aws": (403, "AccessDeniedException"), "supabase": (403, "AccessDenied")},
    "dimension": {"aws": (400, "ValidationException"), "supabase": (500, "InternalError")},
}


class RefusedError(Exception):
    """A request that the service refuses, for one of the reasons in ERRORS."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def require(ok: object, reason: str, message: str) -> None:
    if not ok:
        raise RefusedError(reason, message)


def is_primitive(value: object) -> bool:
    return isinstance(value, str | bool | int) or (isinstance(value, float) and np.isfinite(value))


def json_bytes(metadata: Json) -> int:
    return len(json.dumps(metadata, separators=(",", ":"), ensure_ascii=False).encode())


def view(key: str, values: npt.NDArray[np.float32], metadata: Json, q: Json) -> Json:
    answer: Json = {"key": key}
    if q.get("returnData"):
        answer["data"] = {"float32": values.tolist()}
    if q.get("returnMetadata"):
        answer["metadata"] = metadata
    return answer


def paged(items: list[str], q: Json, most: int) -> tuple[list[str], Json]:
    size, start = q.get("maxResults", most), int(q.get("nextToken", "0"))
    require(1 <= size <= most, "shape", f"maxResults must be 1 to {most}")
    end = start + size
    return items[start:end], {"nextToken": str(end)} if end < len(items) else {}


def filtered_names(where: Json, flavour: Flavour) -> set[str]:
    """Check a filter as the services do; return the metadata names in it."""
    require(isinstance(where, dict) and where, "value", "Filter must contain at least one clause")
    logical = {name for name in where if name.startswith("$")}
    alone = not logical or len(where) == 1 or flavour == "aws"
    require(alone, "shape", "$and and $or must stand alone")
    require(logical <= {"$and", "$or"}, "shape", f"unknown operator {logical}")
    names = set(where) - logical
    for name in logical:
        require(isinstance(where[name], list) and where[name], "shape", f"{name} needs a list")
        for part in where[name]:
            names |= filtered_names(part, flavour)
    for name in set(where) - logical:
        condition = where[name] if isinstance(where[name], dict) else {"$eq": where[name]}
        require(condition, "shape", f"{name} has no operator")
        for op, operand in condition.items():
            require(fits_operator(op, operand), "shape", f"{name}: invalid {op}")
    return names


def count_constraints(where: Json) -> int:
    count = 0
    for name, condition in where.items():
        if name in ("$and", "$or"):
            count += sum(map(count_constraints, condition))
        elif isinstance(condition, dict):
            operands = condition.values()
            count += sum(len(one) if isinstance(one, list) else 1 for one in operands)
        else:
            count += 1
    return count


def fits_operator(op: str, operand: object) -> bool:
    if op in ("$eq", "$ne"):
        return is_primitive(operand)
    if op in ("$gt", "$gte", "$lt", "$lte"):
        return is_primitive(operand) and not isinstance(operand, str | bool)
    if op in ("$in", "$nin"):
        return isinstance(operand, list) and bool(operand) and all(map(is_primitive, operand))
    return op == "$exists" and isinstance(operand, bool)

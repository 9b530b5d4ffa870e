"""What a request is refused with: one shape for pages and data."""

import logging
from collections.abc import Sequence
from typing import Literal

import psycopg
from psycopg_pool import PoolTimeout
from starlette.exceptions import HTTPException

from mail_assets.encoding.model_files import ModelFileError
from mail_assets.indexes.live import LifecycleError
from mail_assets.openai.client import EndpointError
from mail_assets.postgres.errors import PostgresError
from mail_assets.processes.workers import WorkerError
from mail_assets.reading.attachments import AttachmentError
from mail_assets.search.language.request import EmptyPeriodError, RequestError
from mail_assets.store.objects import StoreError
from mail_assets.vectors.index import VectorError
from mail_assets.words.errors import WordsError

logger = logging.getLogger(__name__)

#: What programs tell errors apart by: each is in docs/serving.md.
Code = Literal[
    "bad_request",
    "not_published",
    "cross_site",
    "not_found",
    "unknown_list",
    "unknown_month",
    "method_not_allowed",
    "timeout",
    "forgotten",
    "removed_upstream",
    "too_large",
    "unsupported_media_type",
    "too_many_requests",
    "internal",
    "overloaded",
    "unavailable",
]


class ServingError(Exception):
    """A request that is not answered: its status, a code for programs, a message for people.

    `retry_after` is in seconds, 0 where coming again does not help. `allowed` are the values that
    would do, where they are few, such as the ids that are nearest to an unknown one.
    """

    def __init__(
        self,
        status: int,
        code: Code,
        message: str,
        *,
        retry_after: int = 0,
        allowed: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.retry_after, self.allowed = retry_after, tuple(allowed)

    def as_json(self) -> dict[str, object]:
        """Return the body of the response."""
        return {"error": {"code": self.code, "message": self.message, "allowed": [*self.allowed]}}


def read_error(error: Exception) -> ServingError | None:
    """Return what a request is told of an error, and log what keeps searches from being answered.

    None of a fault of the program.
    """
    told = _read(error)
    if told and told.status == 503 and told is not error:  # not of each that is turned away
        logger.error("a request was not answered", exc_info=error)
    return told


def find_status(error: Exception) -> int:
    """Return the status of an error, 500 of a fault of the program."""
    told = _read(error)
    return told.status if told else 500


def _read(error: Exception) -> ServingError | None:
    match error:
        case ServingError():
            return error
        case EmptyPeriodError():
            return ServingError(404, "not_found", str(error))
        case RequestError():
            return ServingError(400, "bad_request", str(error))
        case HTTPException(status_code=404):
            return ServingError(404, "not_found", "there is no such page")
        case HTTPException(status_code=405, headers=headers):
            methods = (headers or {}).get("Allow", "").split(", ")
            message = f"this can be asked by {' and '.join(methods)}"
            return ServingError(405, "method_not_allowed", message, allowed=methods)
        case psycopg.errors.QueryCanceled():
            message = "the search took too long: fewer words, or a filter, make it quicker"
            return ServingError(504, "timeout", message)
        case psycopg.OperationalError() | PoolTimeout():
            return _unavailable("the database does not answer")
        case PostgresError():
            return _unavailable("the database cannot be used")
        case StoreError() | AttachmentError():
            return _unavailable("the archive of this message cannot be read at the moment")
        case VectorError() | WordsError() | ModelFileError() | EndpointError() | LifecycleError():
            return _unavailable("the index cannot be searched at the moment")
        case WorkerError():
            return _unavailable("this search has ended the process that ran it")
    return None


def _unavailable(message: str) -> ServingError:
    return ServingError(503, "unavailable", message, retry_after=5)

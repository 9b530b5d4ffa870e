"""Client for servers with OpenAI's HTTP API: requests with retries, errors, chat models.

A request is repeated after a failed connection or a transient status, until the caller's time limit
(`patience`) ends; everything else fails at once. The API key is only in a header, never in an
error, a log or a repr. httpx is imported with the first client, because it takes 0.1 s.

A chat model receives messages, and answers with a stream of text or a complete reply. A request
(https://platform.openai.com/docs/api-reference/chat) has only `model`, `messages` and `stream`,
because Ollama, vLLM and others name the other fields differently.
"""

from __future__ import annotations

import codecs
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from mail_assets.errors import UnavailableError
from mail_assets.http.requests import (
    GivenUpError,
    RetryPolicy,
    TransientError,
    call_with_retries,
    is_transient,
    retry_after,
)

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

USER_AGENT = "mail-assets"
CONNECT_TIMEOUT = 10.0  # seconds
#: Longest silence in seconds; a model on a laptop's processor takes minutes for a batch.
READ_TIMEOUT = 300.0
MAX_MESSAGE = 400  # characters of a server's message

_RETRIES = RetryPolicy(first_wait=1.0, longest_wait=60.0, jitter=0.5)
#: A 429 that is not transient: https://platform.openai.com/docs/guides/error-codes
_OUT_OF_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota", re.IGNORECASE)
#: OpenAI and vLLM: "maximum context length is"; Ollama: "input length exceeds the context
#: length", which it may send as a 500; text-embeddings-inference: "must have less than 512 tokens".
_TOO_LONG = re.compile(
    r"context length|maximum input length|too many tokens|too long|less than \d+ tokens",
    re.IGNORECASE,
)


class EndpointError(UnavailableError):
    """A server refuses, fails, or sends an invalid answer.

    The message has the URL, the server's message and the remedy. `too_long`: the input is too long.
    """

    notice = "the index cannot be searched at the moment"

    def __init__(self, message: str, too_long: bool = False) -> None:
        super().__init__(message)
        self.too_long = too_long


@dataclass(frozen=True)
class Server:
    """URL and API key of a server; its variables begin with `setting`, such as MAIL_CHAT."""

    setting: str
    url: str
    key: str = field(default="", repr=False)


class Client:
    """Connections to one server; thread-safe.

    `pause(stopped, seconds)` waits for `seconds`, or until `stopped` is set.
    """

    def __init__(
        self,
        server: Server,
        pause: Callable[[threading.Event, float], object] = threading.Event.wait,
    ) -> None:
        self._server = server
        self._pause = pause
        headers = {"User-Agent": USER_AGENT}
        if server.key:
            headers["Authorization"] = f"Bearer {server.key}"
        import httpx

        self._http = httpx.Client(
            headers=headers, timeout=httpx.Timeout(READ_TIMEOUT, connect=CONNECT_TIMEOUT)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        patience: float,
        stopped: threading.Event | None = None,
    ) -> dict[str, Any]:
        """Send a JSON object and return the JSON object of the answer.

        Failed attempts and the pauses between them take at most `patience` seconds in total; a
        pause ends when `stopped` is set.

        Raises:
            EndpointError: the server refuses, or does not answer within that time.
        """

        def attempt() -> dict[str, Any]:
            with self._network_errors(path):
                response = self._http.post(self._url(path), json=body)
            self._require_ok(path, response)
            return self._object(path, response.text)

        return self._retry(attempt, patience, stopped or threading.Event())

    @contextmanager
    def stream(
        self, path: str, body: Mapping[str, Any], patience: float
    ) -> Iterator[Iterator[bytes]]:
        """Yield the bytes of an answer as they arrive; a failure after the first is not retried."""

        def attempt() -> httpx.Response:
            request = self._http.build_request("POST", self._url(path), json=body)
            with self._network_errors(path):
                response = self._http.send(request, stream=True)
            try:
                if response.status_code != 200:
                    with self._network_errors(path):
                        response.read()
                self._require_ok(path, response)
            except (EndpointError, TransientError):
                response.close()
                raise
            return response

        response = self._retry(attempt, patience, threading.Event())
        try:
            yield self._received(path, response)
        finally:
            response.close()

    def error(self, path: str, fault: str, too_long: bool = False) -> EndpointError:
        """Return an error that names the request."""
        return EndpointError(self._named(path, fault), too_long)

    def quote(self, text: str, most: int = MAX_MESSAGE) -> str:
        """Return a server's text as one line of at most `most` characters, without the key."""
        key = self._server.key
        line = " ".join(replace_halves(text.replace(key, "***") if key else text).split())
        return line if len(line) <= most else f"{line[:most]}..."

    def _received(self, path: str, response: httpx.Response) -> Iterator[bytes]:
        try:
            with self._network_errors(path):
                yield from response.iter_bytes()
        except TransientError as error:
            raise EndpointError(str(error)) from None

    def _url(self, path: str) -> str:
        return f"{self._server.url}/{path}"

    def _named(self, path: str, fault: str) -> str:
        return f"{self._url(path)}: {fault}"

    @contextmanager
    def _network_errors(self, path: str) -> Iterator[None]:
        """Turn httpx's errors into TransientError."""
        import httpx

        try:
            yield
        except httpx.HTTPError as error:
            fault = self.quote(f"{type(error).__name__}: {error}".removesuffix(": "))
            # from None: the original exception has the request with the key
            raise TransientError(self._named(path, fault)) from None

    def _require_ok(self, path: str, response: httpx.Response) -> None:
        status = response.status_code
        if status == 200:
            return
        said = self.quote(error_message(response.text) or response.reason_phrase)
        fault = f"HTTP {status}: {said}"
        too_long = _TOO_LONG.search(said) is not None
        if is_transient(status) and not too_long and not _OUT_OF_QUOTA.search(response.text):
            raise TransientError(self._named(path, fault), retry_after(response.headers))
        remedy = self._remedy(status)
        raise self.error(path, f"{fault}; {remedy}" if remedy else fault, too_long)

    def _remedy(self, status: int) -> str:
        setting = self._server.setting
        if status in (401, 403):
            state = "is refused" if self._server.key else "is not set"
            return f"{setting}_KEY {state}: check it"
        if status == 404:
            return f"check {setting}_URL, which usually ends in /v1, and the model's name"
        if 300 <= status < 400:
            return f"redirects are not followed, to protect the key: correct {setting}_URL"
        return ""

    def _object(self, path: str, text: str) -> dict[str, Any]:
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise self.error(
                path,
                f"the answer is not a JSON object but {self.quote(text, 80)!r}; "
                f"check {self._server.setting}_URL",
            )
        return answer

    def _retry(self, attempt: Callable[[], T], patience: float, stopped: threading.Event) -> T:
        def pause(seconds: float) -> bool:
            self._pause(stopped, seconds)
            return stopped.is_set()

        try:
            return call_with_retries(attempt, replace(_RETRIES, patience=patience), pause)
        except GivenUpError as error:
            times = f", {error.attempts} times in {error.seconds:.0f} s"
            fault = f"{error}{times if error.attempts > 1 else ''}"
            if error.stopped:
                raise EndpointError(f"{fault}; stopped") from None
            wait = error.retry_after
            asks = "" if wait is None else f" (asks to wait {wait:.0f} s)"
            raise EndpointError(f"{fault}{asks}; run again later") from None


def error_message(text: str) -> str:
    """Return the message in the body of a refusal.

    Its form is {"error": {"message": ...}} (OpenAI), {"error": ...} (Ollama), {"message": ...}
    (vLLM), {"detail": ...} (Voyage), or the text of a proxy.
    """
    said: object = text
    try:
        found = json.loads(text)
        for name in ("error", "message", "detail"):
            if isinstance(found, dict) and found.get(name):
                said = found = found[name]
    except (ValueError, RecursionError):
        pass
    return str(said).strip()


def join_halves(texts: Iterable[str]) -> Iterator[str]:
    """Yield texts; join a surrogate pair that is split over two of them.

    JSON writes a character beyond U+FFFF as two surrogates ("\\ud83e\\udd86"). A server may send
    them in two events, and a model may write only one of them. No file, terminal or database
    accepts a lone surrogate.
    """
    held = ""
    for text in texts:
        text = held + text
        held = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        if whole := replace_halves(text.removesuffix(held)):
            yield whole
    if held:
        yield replace_halves(held)


def replace_halves(text: str) -> str:
    """Join surrogate pairs, and replace lone surrogates by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


PATH = "chat/completions"
#: Seconds to wait until the server accepts a question, including retries.
PATIENCE = 30.0
#: Approximate characters per token, if a server does not count tokens.
CHARACTERS_OF_TOKEN = 4

_LINE_END = re.compile(r"\r\n|\r|\n")
_BEGIN, _END = "<think>", "</think>"


@dataclass(frozen=True)
class ChatModel:
    """A chat model; a question may include `budget` tokens of excerpts."""

    model: str
    url: str
    budget: int = 6_000


class ChatMessage(NamedTuple):
    """A message to a chat model; `role` is system, user or assistant."""

    role: str
    content: str


def complete(client: Client, chat: ChatModel, messages: Sequence[ChatMessage]) -> Iterator[str]:
    """Yield the answer's text as it arrives.

    Raises:
        EndpointError: the server refuses, fails, or ends the answer before it is complete. The text
            up to that point was yielded.
    """
    body = {
        "model": chat.model,
        "messages": [message._asdict() for message in messages],
        "stream": True,
    }
    with client.stream(PATH, body, PATIENCE) as pieces:
        yield from leave_out_thoughts(join_halves(_texts(client, pieces)))


def _texts(client: Client, pieces: Iterable[bytes]) -> Iterator[str]:
    reason: object = None
    data: str | None = None
    for data in parse_events(pieces):
        if data.strip() == "[DONE]":
            reason = reason or "stop"
            break
        choice = _choice(client, data)
        delta = choice.get("delta")
        text = delta.get("content") if isinstance(delta, dict) else None
        if isinstance(text, str) and text:
            yield text
        reason = choice.get("finish_reason") or reason
    if data is None:
        raise client.error(PATH, "the answer is not a stream of events; check MAIL_CHAT_URL")
    if reason is None:
        raise client.error(PATH, "the answer broke off")
    if reason != "stop":
        said = client.quote(str(reason), 40)
        raise client.error(PATH, f"the answer is incomplete: finish_reason is {said!r}")


def _choice(client: Client, data: str) -> dict[str, Any]:
    """Return the first choice of an event; {} if there is none, as in an event of token counts."""
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict) or event.get("error"):
        raise client.error(PATH, f"failed in mid-answer: {client.quote(data)}")
    choices = event.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else {}
    return choice if isinstance(choice, dict) else {}


class Reply(NamedTuple):
    """A reply; complete if `reason` is "stop".

    Token counts come from the server, else they are a quarter of the characters.
    """

    text: str
    reason: str
    prompt_tokens: int
    completion_tokens: int


def count_prompt_tokens(messages: Sequence[ChatMessage]) -> int:
    """Estimate the tokens of messages."""
    return sum(len(message.content) for message in messages) // CHARACTERS_OF_TOKEN


def ask_model(client: Client, chat: ChatModel, messages: Sequence[ChatMessage]) -> Reply:
    """Return the reply to messages."""
    body = {"model": chat.model, "messages": [message._asdict() for message in messages]}
    answer = client.post(PATH, body, PATIENCE)
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise client.error(PATH, f"the answer has no choice: {client.quote(str(answer), 80)!r}")
    text = message.get("content")
    text = replace_halves(text) if isinstance(text, str) else ""
    given = answer.get("usage")
    usage: dict[str, Any] = given if isinstance(given, dict) else {}
    return Reply(
        "".join(leave_out_thoughts([text])),
        str(choice.get("finish_reason") or "stop"),
        _count(usage.get("prompt_tokens"), count_prompt_tokens(messages)),
        _count(usage.get("completion_tokens"), len(text) // CHARACTERS_OF_TOKEN),
    )


def _count(tokens: object, estimate: int) -> int:
    return tokens if isinstance(tokens, int) and tokens >= 0 else estimate


def leave_out_thoughts(texts: Iterable[str]) -> Iterator[str]:
    """Yield an answer without the model's thoughts before it; unfinished thoughts give no answer.

    Some servers send thoughts separately, or not at all. Others send them at the beginning of the
    answer, between `<think>` and `</think>`, as models of DeepSeek and Qwen write them.
    """
    pieces = iter(texts)
    head = ""
    for text in pieces:
        head += text
        begun = head.lstrip()
        if begun.startswith(_BEGIN):
            _, ended, answer = begun.partition(_END)
            if answer.strip():
                yield answer.lstrip()
                break
            # keep only the end, so that the time is linear in the length of the thoughts
            head = _BEGIN + (_END if ended else begun[len(_BEGIN) :][-len(_END) :])
        elif not _BEGIN.startswith(begun):
            yield head
            break
    else:
        if head and not head.startswith(_BEGIN):
            yield head
    yield from pieces


def parse_events(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the data of each server-sent event that has any; pieces may be split anywhere.

    https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
    Comments, which keep a connection alive, and fields other than `data` are skipped. Unlike the
    standard, an event without a final empty line is yielded, because some servers leave that line
    out. A truncated event is not valid JSON and fails later.
    """
    data: list[str] = []
    for line in _lines(pieces):
        name, _, value = line.partition(":")
        if not line and data:
            yield "\n".join(data)
            data = []
        elif name == "data":
            data.append(value.removeprefix(" "))
    if data:
        yield "\n".join(data)


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest = ""
    for piece in pieces:
        rest += decoder.decode(piece)
        # a \r at the end may be the first half of a \r\n
        whole = len(rest) - rest.endswith("\r")
        *lines, tail = _LINE_END.split(rest[:whole])
        yield from lines
        rest = tail + rest[whole:]
    yield from _LINE_END.split(rest + decoder.decode(b"", final=True))

"""Answers to questions, as they may be published: the events in which they arrive, as plain values.

excerpts   what may be cited       {"question", "maker", "excerpts": [citation, ...]}
text       a piece of the answer   {"text"}
citations  what the text cites     {"citations": [citation, ...]}
end        how it ended            {"sufficient", "complete", "fault", "dropped", ...}
error      there is no answer      {"error": {...}}, as everywhere
"""

import logging
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from mail_assets.answers.answer import Answer, Citation, Event, Sources, Text
from mail_assets.answers.evidence import Evidence
from mail_assets.answers.excerpts import BudgetError
from mail_assets.answers.maker import AnswerMaker, stream_answer
from mail_assets.openai.client import EndpointError
from mail_assets.search.language.request import Request as SearchRequest
from mail_assets.serving.documents import Document, Documents
from mail_assets.serving.errors import ServingError
from mail_assets.serving.parameters import QUESTION_PARAMETERS, make_request, read_parameters
from mail_assets.serving.urls import page_url

logger = logging.getLogger(__name__)

#: Messages that an answer is drawn from.
MESSAGES = 12


class AnswerEvent(NamedTuple):
    """A part of an answer that arrives: its name, and what it says."""

    name: str
    data: Document


@dataclass(frozen=True)
class Answering:
    """Answers questions by what makes answers: a chat model, or sentences of the mail."""

    documents: Documents
    maker: AnswerMaker

    def find(self, given: Mapping[str, str]) -> Evidence:
        """Return what a question is answered from, without addresses where they are hidden.

        Nothing of the archive is needed after this.

        Raises:
            RequestError, ServingError: a parameter is wrong, or too many searches run.
        """
        with self.documents.service.audit.watch(self.documents.surface) as watched:
            parameters = read_parameters(given, QUESTION_PARAMETERS)
            if "q" not in parameters:
                raise ServingError(400, "bad_request", "ask a question: q is empty")
            request = make_request({**parameters, "limit": str(MESSAGES)})
            watched.request = replace(request, facets=False, explain=False)
            evidence = self._find(self.documents.publication.restrict(watched.request))
            watched.mode, watched.hits = evidence.mode, len(evidence.excerpts)
        return self._hide_addresses(evidence) if self.documents.publication.hides else evidence

    def stream(self, evidence: Evidence) -> Generator[AnswerEvent, None, None]:
        """Yield the events of an answer; the last is an end or an error."""
        events = stream_answer(self.maker, evidence)
        ids = frozenset(excerpt.hit.message_id for excerpt in evidence.excerpts)
        try:
            for event in events:
                for name, data in _describe(event):
                    yield AnswerEvent(name, self.documents.publication.publish(data, ids))
        except EndpointError as error:
            logger.error("a question was not answered: %s", error)
            told = ServingError(503, "unavailable", "the chat model does not answer", retry_after=5)
            yield AnswerEvent("error", told.as_json())

    def _find(self, request: SearchRequest) -> Evidence:
        try:
            hide = self.documents.publication.publish_part
            return self.documents.service.find_evidence(request, self.maker.budget, hide)
        except BudgetError as error:
            logger.error("a question was not answered: %s", error)
            message = "the chat model's budget is too small for this archive"
            raise ServingError(503, "unavailable", message) from None

    def _hide_addresses(self, evidence: Evidence) -> Evidence:
        """Return evidence with addresses masked: what a model does not know it cannot tell.

        Texts are so already, but where their lines or spans were joined.
        """
        mask = self.documents.publication.publish
        excerpts = tuple(
            replace(
                excerpt,
                text=mask(excerpt.text),
                hit=replace(
                    excerpt.hit,
                    from_email="",
                    from_name=mask(excerpt.hit.from_name),
                    subject=mask(excerpt.hit.subject),
                ),
            )
            for excerpt in evidence.excerpts
        )
        sentences = tuple(replace(one, text=mask(one.text)) for one in evidence.sentences)
        return replace(evidence, excerpts=excerpts, sentences=sentences)


def read_events(events: Iterable[AnswerEvent]) -> Document:
    """Return the whole answer that some events make.

    Raises:
        ServingError: there is none.
    """
    answer: Document = {"text": ""}
    for name, data in events:
        if name == "error":
            message = data["error"]["message"]
            raise ServingError(503, data["error"]["code"], message, retry_after=5)
        if name == "text":
            answer["text"] += data["text"]
        elif name == "excerpts":
            answer |= {key: data[key] for key in ("question", "maker")}
        else:
            answer |= data
    return answer


def _describe(event: Event) -> Iterator[tuple[str, dict[str, Any]]]:
    match event:
        case Sources(question, maker, excerpts):
            cited = [_describe_citation(one) for one in excerpts]
            yield "excerpts", {"question": question, "maker": maker, "excerpts": cited}
        case Text(text):
            yield "text", {"text": text}
        case Answer():
            yield "citations", {"citations": [_describe_citation(one) for one in event.citations]}
            if event.fault:
                logger.error("an answer broke off: %s", event.fault)
            names = ("sufficient", "complete", "dropped", "took_ms")
            end = {name: getattr(event, name) for name in names}
            # what the server said is for its operator
            yield "end", end | {"fault": "the chat model broke off" if event.fault else ""}


def _describe_citation(citation: Citation) -> dict[str, Any]:
    return asdict(citation) | {"url": page_url("message", citation.message_id)}

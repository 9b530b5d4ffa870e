"""A thread that repeats the same requests."""

import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mail_assets.search.language.request import Request
from mail_assets.search.open import open_searcher
from mail_assets.search.response import Response
from mail_assets_tests.sample_corpus import Corpus
from mail_assets_tests.waits import LONG


class QueryLoop(threading.Thread):
    """Thread that asks requests in turn, until it is stopped or fails."""

    def __init__(self, corpus: Corpus, requests: Sequence[Request]) -> None:
        super().__init__()
        self.corpus, self.requests = corpus, requests
        self.answers: list[Response] = []
        self.error: BaseException | None = None
        self.stopping = threading.Event()
        self.answered = threading.Condition()

    def run(self) -> None:
        try:
            with open_searcher(self.corpus.search_settings) as searcher:
                for request in itertools.cycle(self.requests):
                    if self.stopping.is_set():
                        return
                    response = searcher.search(request)
                    with self.answered:
                        self.answers.append(response)
                        self.answered.notify_all()
        except BaseException as error:
            with self.answered:
                self.error = error
                self.answered.notify_all()

    def go_on(self, count: int) -> list[Response]:
        """Return the next `count` answers, to requests that start from now on."""
        with self.answered:
            start = len(self.answers) + 1  # one request may be in progress
            assert self.answered.wait_for(
                lambda: self.error or len(self.answers) >= start + count, timeout=LONG
            )
            assert self.error is None
            return self.answers[start : start + count]


@contextmanager
def ask_in_loop(corpus: Corpus, requests: Sequence[Request]) -> Iterator[QueryLoop]:
    """Yield a running loop over a corpus; stop it at the end."""
    loop = QueryLoop(corpus, requests)
    loop.start()
    try:
        yield loop
    finally:
        loop.stopping.set()
        loop.join()

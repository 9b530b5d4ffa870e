"""Cached pages of threads: compressed, with the state from which each was made.

Each request reads the state again (a few milliseconds); the page is made again only if its state
has changed.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from mail_assets.reading.browsing import find_known_ids
from mail_assets.reading.conversations import read_state
from mail_assets.web.documents import POSTS, Documents, read_patch_states
from mail_assets.web.pages import Pages
from mail_assets.web.responses import compress, tag_body

#: Most bytes of all cached pages.
MAX_KEPT_BYTES = 32 << 20


class ThreadState(NamedTuple):
    """The state of a thread's page: digest of its rows, known ids that it names, patch states.

    Patch states are part of it because another thread or a commit often decides them.
    """

    rows: str
    named: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    posts: tuple[str, ...] = ()
    patches: Sequence[object] = ()


class KeptPage(NamedTuple):
    """A cached page: entity tag, compressed body, and the state from which it was made."""

    tag: str
    packed: bytes
    state: ThreadState


@dataclass
class KeptPages:
    """The most recently sent pages, up to MAX_KEPT_BYTES; the least recent one is dropped."""

    most: int = MAX_KEPT_BYTES
    _pages: OrderedDict[str, KeptPage] = field(default_factory=OrderedDict)
    _bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _making: dict[str, tuple[threading.Lock, int]] = field(default_factory=dict)

    def find(self, key: str) -> KeptPage | None:
        """Return the page of a key."""
        with self._lock:
            if page := self._pages.get(key):
                self._pages.move_to_end(key)
            return page

    def keep(self, key: str, page: KeptPage) -> None:
        """Cache a page; it replaces the page of the same key."""
        with self._lock:
            if old := self._pages.pop(key, None):
                self._bytes -= _measure(key, old)
            self._pages[key] = page
            self._bytes += _measure(key, page)
            while self._bytes > self.most:
                self._bytes -= _measure(*self._pages.popitem(last=False))

    @contextmanager
    def making(self, key: str) -> Iterator[None]:
        """Wait until no other thread makes the page of a key; by then it may be cached."""
        with self._lock:
            lock, waiting = self._making.get(key, (threading.Lock(), 0))
            self._making[key] = lock, waiting + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, waiting = self._making.pop(key)
                if waiting > 1:
                    self._making[key] = lock, waiting - 1


def _measure(key: str, page: KeptPage) -> int:
    return len(page.packed) + len(key) + 1000  # an estimate of the rest


@dataclass
class ThreadPages:
    """Returns the pages of threads, from the cache where they are up to date."""

    documents: Documents
    pages: Pages
    kept: KeptPages = field(default_factory=KeptPages)

    def read(self, id: str) -> KeptPage:
        """Return the page of the thread that has an id."""
        with self.documents.service.reading():
            place = self.documents.find_place(id)
            rows = self.documents.service.read(read_state, place.thread_id)
            key = f"{place.position // POSTS} {place.thread_id}"
            page = self._find(key, rows)
        if page is None:
            with self.kept.making(key):
                page = self._find(key, rows) or self._make(key, rows, id)
        return page

    def _find(self, key: str, rows: str) -> KeptPage | None:
        page = self.kept.find(key)
        return page if page and self._is_current(page.state, rows) else None

    def _is_current(self, state: ThreadState, rows: str) -> bool:
        if state.rows != rows:
            return False
        known = self.documents.service.read(find_known_ids, state.named)
        if tuple(sorted(known)) != state.known:
            return False
        return read_patch_states(self.documents.service, state.posts) == state.patches

    def _make(self, key: str, rows: str, id: str) -> KeptPage:
        document, named = self.documents.read_thread(id)
        posts = tuple(post["message_id"] for post in document["posts"])
        mentions, patches = tuple(document["mentions"]), document["patch_states"]
        state = ThreadState(rows, named, mentions, posts, patches)
        packed = compress(self.pages.thread({**document}).encode())
        page = KeptPage(tag_body(packed), packed, state)
        self.kept.keep(key, page)
        return page

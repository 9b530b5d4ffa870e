"""Measured systems; each answers the questions of a set, in their order.

A result has `id`, `found` and `note`. `found` has at most DEPTH Message-IDs (commit ids for
outcomes), best first; it is empty if the system finds nothing. `note` is the error if the system
refuses the question.
"""

import json
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.yardstick.corpus import MAIL, REPOSITORY, History, Mail
from benchmarks.yardstick.sets import SETS, Question
from mail_assets.environment import child_environment
from mail_assets.mail.patches.subjects import fold_title
from mail_assets.search.language.request import Group, Mode, Request, RequestError
from mail_assets.search.open import open_searcher
from mail_assets.settings.settings import load_settings

DEPTH = 20

#: Sets whose questions are text, for systems that search by words.
BY_WORDS = ("subjects", "versions", "retitled", "citations")

_WORD = re.compile(r"\w+")
_OPERATORS = frozenset({"and", "or", "not", "xor", "near", "adj"})
#: Tolerance for wrong clocks: a mail may be later than its commit by this.
CLOCKS = timedelta(days=1)


class Result(NamedTuple):
    """Answer of a system to one question."""

    id: str
    found: tuple[str, ...]
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the line of its file."""
        return {"id": self.id, "found": [*self.found], "note": self.note}


Questions = Sequence[Question]


class System(NamedTuple):
    """A system, its sets, and the function that answers the questions of a set.

    `missing` is the reason if it cannot run on this machine.
    """

    name: str
    sets: Sequence[str]
    ask: Callable[[Questions], Iterable[Result]]
    missing: str = ""


def _hits(one: Question, ids: Iterable[str]) -> Result:
    """Return a result without the mails of the question itself."""
    without = {one.id, *one.more.get("without", ())}
    return Result(one.id, tuple(x for x in dict.fromkeys(ids) if x not in without)[:DEPTH])


# This project


class Home(NamedTuple):
    """A home of this project, filled with the list and the withheld repository."""

    folder: Path
    lists: Path
    name: str

    def run(self, *arguments: str, text: str = "") -> str:
        """Run the project's command line; return its output.

        Raises:
            subprocess.CalledProcessError: the command failed; its errors were printed.
        """
        command = [sys.executable, "-m", "mail_assets.cli", *arguments]
        done = subprocess.run(
            command, input=text, stdout=subprocess.PIPE, text=True, check=True, env=self.variables
        )
        return done.stdout

    @property
    def variables(self) -> dict[str, str]:
        """The environment of its processes."""
        places = {"MAIL_HOME": str(self.folder), "MAIL_LISTS": str(self.lists)}
        return child_environment(**places, DAGSTER_HOME=str(self.folder / "dagster"))


class Source(NamedTuple):
    """Entries of lists.toml for the list and the repository."""

    list_name: str
    archives: str
    dialect: str
    months: tuple[str, str]
    repository: str
    branch: str
    prefix: str


def fill_home(source: Source, out: Path) -> Home:
    """Fill `out`/home with the mail and the commits; a second call changes nothing.

    Raises:
        subprocess.CalledProcessError: the backfill failed; its errors were printed.
    """
    first, last = source.months
    tables: dict[str, dict[str, Any]] = {
        f"[{source.list_name}]": {
            "source": source.archives, "dialect": source.dialect, "start": first,
        },
        f"[repositories.{source.repository}]": {
            "source": str((out / REPOSITORY).resolve()), "branch": source.branch,
            "lists": [source.list_name], "prefix": source.prefix,
        },
    }  # fmt: skip
    lines = [f"first_month = {json.dumps(first)}", f"last_month = {json.dumps(last)}"]
    for head, table in tables.items():
        lines += ["", head, *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    lists = out / "lists.toml"
    lists.write_text("\n".join(lines) + "\n", encoding="utf-8")
    home = Home(out / "home", lists, source.list_name)
    home.folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "mail_assets.cli", "backfill"]
    subprocess.run(command, stdout=sys.stderr, check=True, env=home.variables)
    return home


def our_search(open_home: Callable[[], Home]) -> Iterator[System]:
    """Yield this project's search by words, by meaning, and by both."""
    for name, mode in (
        ("keyword", Mode.fulltext),
        ("semantic", Mode.semantic),
        ("hybrid", Mode.hybrid),
    ):

        def ask(questions: Questions, mode: str = mode) -> Iterator[Result]:
            home = open_home()
            settings = load_settings(home.variables)
            with open_searcher(settings.search) as searcher:
                for one in questions:
                    without = (one.id, *one.more.get("without", ()))
                    try:
                        request = Request(
                            one.text, mode=mode, lists=(home.name,), limit=DEPTH,
                            group=Group.message, without=without,
                        )  # fmt: skip
                    except RequestError as error:
                        yield Result(one.id, (), str(error))
                        continue
                    yield _hits(one, (hit.message_id for hit in searcher.search(request).hits))

        yield System(f"mail-assets, {name}", BY_WORDS, ask)


def our_patches(open_home: Callable[[], Home]) -> System:
    """Return this project's links from commits to mail, and its series of patches."""

    def ask(questions: Questions) -> Iterator[Result]:
        home, ids = open_home(), "".join(f"{one.id}\n" for one in questions)
        if questions[0].set == "commits":
            lines = home.run("why", "--shas", "-", "--json", text=ids).splitlines()
            for one, found in zip(questions, map(json.loads, lines), strict=True):
                yield _hits(one, () if found["abstained"] else found["message_ids"])
        else:
            lines = home.run("series", "--ids", "-", "--json", text=ids).splitlines()
            for one, found in zip(questions, map(json.loads, lines), strict=True):
                newest_first = found["versions"][::-1]
                yield _hits(one, found["shas"] if one.set == "outcomes" else newest_first)

    return System(
        "mail-assets, why and series", ("commits", "versions", "retitled", "outcomes"), ask
    )


# Other programs and libraries


def notmuch(out: Path) -> System:
    """Return notmuch: all words of the question, newest first, because it ranks by date only."""
    program = shutil.which("notmuch")

    def ask(questions: Questions) -> Iterator[Result]:
        assert program
        settings = out / "notmuch.ini"
        settings.write_text(
            f"[database]\npath={(out / MAIL).resolve()}\n[user]\nname=nobody\n"
            "primary_email=nobody@localhost\n[new]\ntags=\n[index]\ndecrypt=false\n"
        )
        variables = child_environment(without="NOTMUCH_", NOTMUCH_CONFIG=str(settings))

        def run(*arguments: str) -> str:
            command = [program, *arguments]
            return subprocess.run(
                command, stdout=subprocess.PIPE, text=True, check=True, env=variables
            ).stdout

        run("new", "--quiet", "--no-hooks")
        for one in questions:
            words = [x for x in _WORD.findall(one.text) if x.lower() not in _OPERATORS]
            limit = f"--limit={DEPTH + 10}"
            what = ("--output=messages", "--format=json", "--sort=newest-first", limit)
            found = json.loads(run("search", *what, "--", " ".join(words))) if words else []
            yield _hits(one, found)

    missing = "" if program else "not installed"
    return System("notmuch", BY_WORDS, ask, missing)


def fts5(mails: Sequence[Mail]) -> System:
    """Return SQLite FTS5: any word of the question, stemmed, in subject, sender or text."""
    connection: list[sqlite3.Connection] = []

    def index() -> sqlite3.Connection:
        made = sqlite3.connect(":memory:")
        made.execute(
            "create virtual table mail using fts5"
            "(id unindexed, subject, sender, body, tokenize = 'porter unicode61')"
        )
        rows = (
            (one.message_id, one.subject, f"{one.from_name} {one.from_email}", one.body)
            for one in mails
        )
        made.executemany("insert into mail values (?, ?, ?, ?)", rows)
        return made

    def ask(questions: Questions) -> Iterator[Result]:
        if not connection:
            connection.append(index())
        for one in questions:
            words = " OR ".join(f'"{word}"' for word in dict.fromkeys(_WORD.findall(one.text)))
            statement = "select id from mail where mail match ? order by rank, rowid limit ?"
            rows = connection[0].execute(statement, (words, DEPTH + 10)).fetchall() if words else []
            yield _hits(one, (id for (id,) in rows))

    return System("SQLite FTS5", BY_WORDS, ask)


class Bm25:
    """BM25 with k1 = 1.2 and b = 0.75 (Robertson, Zaragoza 2009) over lists of words."""

    def __init__(self, documents: Iterable[Sequence[str]]) -> None:
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        sizes = []
        for place, words in enumerate(documents):
            sizes.append(len(words))
            for word, count in Counter(words).items():
                found[word].append((place, count))
        lengths = np.array(sizes, dtype=np.float64)
        self._damping = 1.2 * (0.25 + 0.75 * lengths / max(lengths.mean(), 1.0))
        self._found = {word: np.array(pairs) for word, pairs in found.items()}

    def rank(self, words: Iterable[str], depth: int) -> list[int]:
        """Return the places of the best documents that have a word, best first."""
        scores = np.zeros(len(self._damping))
        for word in dict.fromkeys(words):
            if word in self._found:
                places, counts = self._found[word].T
                idf = np.log(1 + (len(scores) - len(places) + 0.5) / (len(places) + 0.5))
                scores[places] += idf * counts * 2.2 / (counts + self._damping[places])
        best = np.argsort(-scores, kind="stable")[:depth]
        return [int(place) for place in best if scores[place] > 0]


def bm25(mails: Sequence[Mail]) -> System:
    """Return plain BM25: any word of the question as written, in subject, sender or text."""
    ranker: list[Bm25] = []

    def ask(questions: Questions) -> Iterator[Result]:
        if not ranker:
            texts = (f"{one.subject} {one.from_name} {one.from_email} {one.body}" for one in mails)
            ranker.append(Bm25(_WORD.findall(text.lower()) for text in texts))
        for one in questions:
            places = ranker[0].rank(_WORD.findall(one.text.lower()), DEPTH + 10)
            yield _hits(one, (mails[place].message_id for place in places))

    return System("BM25, plain", BY_WORDS, ask)


# What a shell script would do


def naive(mails: Sequence[Mail], history: History, *, by_diff: bool) -> System:
    """Return a system that finds the newest mail with the same title.

    `by_diff` puts mail with the same patch-id first. For outcomes it finds the oldest commit with
    the same title.
    """
    titled, same = defaultdict[str, list[Mail]](list), defaultdict[str, list[Mail]](list)
    for mail in reversed(mails):
        for patch in mail.patches:
            titled[patch.title_key].append(mail)
            if patch.patch_id:
                same[patch.patch_id].append(mail)
    by_id = {mail.message_id: mail for mail in mails}
    commits = defaultdict[str, list[str]](list)
    for commit in reversed(history.commits):
        for key in (commit.patch_id, fold_title(commit.subject)):
            commits[key].append(history.withheld[commit.sha])

    def find(one: Question) -> Iterator[str]:
        mail = by_id.get(one.id)
        if mail and mail.patch:
            ids = (mail.patch.patch_id, mail.patch.title_key)
        else:
            ids = (str(one.more.get("patch_id", "")), fold_title(one.text))
        if one.set == "outcomes":
            for key in ids if by_diff else ids[1:]:
                yield from commits.get(key, ()) if key else ()
            return
        until = one.more.get("committed_at")
        latest = datetime.fromisoformat(str(until)) + CLOCKS if until else None
        for some in ([same.get(ids[0], [])] if by_diff and ids[0] else []) + [titled[ids[1]]]:
            yield from (x.message_id for x in some if latest is None or x.sent <= latest)

    name = "same patch-id, else newest same subject" if by_diff else "newest same subject"
    sets = ("commits", "subjects", "versions", "retitled", "outcomes")
    return System(name, sets, lambda some: (_hits(one, find(one)) for one in some))


# Others


class PlugError(Exception):
    """Failure of a measured program, or output that is no result."""


def plug(name: str, command: str) -> System:
    """Return a program that reads questions and prints answers, both as JSON lines.

    Each printed line has the `id` of a question and `found`, a list of ids, best first. Questions
    without a line count as unanswered.
    """

    def ask(questions: Questions) -> Iterator[Result]:
        text = "".join(f"{json.dumps(one.as_json())}\n" for one in questions)
        done = subprocess.run(
            shlex.split(command), input=text, stdout=subprocess.PIPE, text=True, check=False
        )
        if done.returncode:
            raise PlugError(f"{name}: {command} ended with exit code {done.returncode}")
        found = dict(_read_line(name, line) for line in done.stdout.splitlines() if line.strip())
        if unknown := found.keys() - {one.id for one in questions}:
            raise PlugError(f"{name}: it answers {min(unknown)}, which was not asked")
        yield from (_hits(one, found.get(one.id, ())) for one in questions)

    return System(name, SETS, ask)


def _read_line(name: str, line: str) -> tuple[str, list[str]]:
    try:
        one = json.loads(line)
        id, found = one["id"], one["found"]
        if isinstance(id, str) and all(isinstance(x, str) for x in found):
            return id, [x.strip("<>") for x in found]
    except (ValueError, TypeError, KeyError):
        pass
    raise PlugError(
        f"{name}: {line[:80]!r} is no result; print one line "
        '{"id": "...", "found": ["..."]} for each question'
    )

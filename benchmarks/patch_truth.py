"""Score commits, versions and outcomes of patches against what developers wrote themselves.

    MAIL_HOME=... python -m benchmarks.patch_truth TRUTH
    python -m benchmarks.patch_truth TRUTH --commits FILE --series FILE --outcomes FILE

TRUTH is a folder with commits.jsonl, series.jsonl and outcomes.jsonl; its README describes them.
Without files the database of MAIL_HOME is scored. Commits are then scored several times: as they
are, without trailers, and also without dates and titles. The files can come from any program; each
line is a JSON object:

    commits    {"sha", "message_ids": best first, "abstained"}: mail-assets why --shas FILE --json
    series     {"message_id", "versions": message ids}: mail-assets series --ids FILE --json
    outcomes   {"message_id", "sha"} or {"message_id", "said_in", "is_cover"}: a patch and its
               commit, or the mail that says that it was applied

Each measure is a ratio of counts. Its interval has 95 % of the ratios of RESAMPLES bootstrap
samples of groups, because commits, lineages and mails of one thread are not independent. Without a
database, a group is the work of one person on one day.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psycopg

from mail_assets.mail.patches.links import CommitFacts, abstains
from mail_assets.mail.patches.subjects import fold_title, read_subject
from mail_assets.reading.series import describe_mails
from mail_assets.settings.settings import load_settings
from mail_assets.tables.commits import CommitKey, Discussed, find_links, read_facts
from mail_assets.tables.lists import EVERY_LIST, show_lists

RESAMPLES, SEED = 2_000, 20_240_301
#: Minimum digits of an abbreviated commit id.
SHORTEST = 7

Row = Mapping[str, Any]
#: Function from a Message-ID, and "person day", to the group of a row.
GroupOf = Callable[[str, str], str]


class Measure:
    """A ratio of counts; the counts are kept by group."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._counts: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])

    def add(self, group: str, right: float, of: float = 1) -> None:
        """Add cases to the counts of a group."""
        self._counts[group][0] += right
        self._counts[group][1] += of

    def __str__(self) -> str:
        value, low, high, count = self.estimate()
        return f"{self.name:<52} {value:.3f} [{low:.3f}, {high:.3f}]  n={count:.0f}"

    def estimate(self) -> tuple[float, float, float, float]:
        """Return the ratio, the ends of its interval, and the number of cases."""
        counts = np.array([*self._counts.values()]).reshape(-1, 2)
        right, of = counts.sum(axis=0) if len(counts) else (0.0, 0.0)
        if not of:
            return float("nan"), float("nan"), float("nan"), 0
        random = np.random.default_rng(SEED)
        drawn = random.integers(0, len(counts), (RESAMPLES, len(counts)))
        sums = counts[drawn].sum(axis=1)
        ratios = sums[:, 0] / np.maximum(sums[:, 1], 1)
        low, high = np.quantile(ratios, (0.025, 0.975))
        return float(right / of), float(low), float(high), float(of)


class Pairs(NamedTuple):
    """Precision, recall and F1 of a set of answers."""

    precision: Measure
    recall: Measure
    f1: Measure

    @classmethod
    def named(cls, name: str) -> "Pairs":
        """Return measures without cases."""
        return cls(*(Measure(f"{name}: {what}") for what in ("precision", "recall", "F1")))

    def add_said(self, group: str, is_right: bool) -> None:
        """Count a given answer."""
        self.precision.add(group, is_right)
        self.f1.add(group, 2 * is_right)

    def add_wanted(self, group: str, is_found: bool) -> None:
        """Count an expected answer; F1 is 2 x right / (given + expected)."""
        self.recall.add(group, is_found)
        self.f1.add(group, 0)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


# --- commits ---


def score_commits(truth: Iterable[Row], said: Iterable[Row], group_of: GroupOf) -> list[Measure]:
    """Return how often the linked mail is first, and commits without mail get no mail."""
    got = {row["sha"]: row for row in said}
    first, other, alike, refused = map(
        Measure,
        ("linked mail first", "first of those with a mail", "linked mail or its patch-id first",
         "without mail refused"),
    )  # fmt: skip
    for row in truth:
        result = got.get(row["sha"], {"message_ids": [], "abstained": False})
        ids = [] if result["abstained"] else [bare(one) for one in result["message_ids"]]
        wanted = {bare(one) for one in row.get("linked", ())}
        group = group_of(next(iter(sorted(wanted)), ""), _by(row["author"], row["author_date"]))
        if row["kind"] == "linked":
            first.add(group, ids[:1] != [] and ids[0] in wanted)
            more = wanted | {bare(one) for one in row.get("patch_id_mails", ())}
            alike.add(group, ids[:1] != [] and ids[0] in more)
            if ids:
                other.add(group, ids[0] in wanted)
        elif row["kind"] == "no-mail":
            refused.add(group, row["sha"] in got and not ids)
    return [first, other, alike, refused]


# --- versions ---


def score_series(truth: Sequence[Row], said: Iterable[Row], group_of: GroupOf) -> list[Measure]:
    """Return measures of pairs of versions: of all pairs, and of pairs with different titles.

    Pairs with a mail outside the truth are not judged. Neither are pairs of two lineages with the
    same title and author, because the truth may have failed to join them.
    """
    title: dict[str, tuple[str, str]] = {}
    group: dict[str, str] = {}
    wanted: dict[frozenset[str], bool] = {}
    for row in truth:
        first = row["versions"][0]
        own = group_of(bare(first["message_id"]), _by(first["author"], first["date"]))
        for one in row["versions"]:
            id = bare(one["message_id"])
            who = one["author"].split("<")[0].strip().lower()
            title[id] = fold_title(read_subject(one["subject"]).title), who
            group.setdefault(id, own)
        ids = dict.fromkeys(bare(one["message_id"]) for one in row["versions"])
        for pair in map(frozenset, combinations(ids, 2)):
            wanted[pair] = len({title[id][0] for id in pair}) > 1
    found = {
        frozenset((bare(row["message_id"]), bare(one)))
        for row in said
        for one in row.get("versions") or ()
        if bare(one) != bare(row["message_id"])
    }
    judged = {
        pair
        for pair in found
        if pair <= title.keys() and (pair in wanted or len({title[id] for id in pair}) > 1)
    }
    every, differ = Pairs.named("pairs of versions"), Pairs.named("pairs, titles differ")
    for pair in judged:
        own = group[min(pair)]
        every.add_said(own, pair in wanted)
        if len({title[id][0] for id in pair}) > 1:
            differ.add_said(own, pair in wanted)
    for pair, is_hard in wanted.items():
        own = group[min(pair)]
        every.add_wanted(own, pair in found)
        if is_hard:
            differ.add_wanted(own, pair in found)
    return [*every, *differ]


# --- outcomes ---


def score_outcomes(truth: Iterable[Row], said: Iterable[Row], group_of: GroupOf) -> list[Measure]:
    """Return how well mails about applied patches are linked to the patches and their commits."""
    commits: dict[str, set[str]] = defaultdict(set)
    reasons: dict[str, set[str]] = defaultdict(set)
    covers: set[str] = set()
    for row in said:
        id = bare(row["message_id"])
        if row.get("sha"):
            commits[id].add(str(row["sha"]).lower())
        if row.get("said_in"):
            reasons[bare(row["said_in"])].add(id)
            covers |= {id} if row.get("is_cover") else set()
    found, right, to_commit, right_commit, named = map(
        Measure,
        ("mail that says so finds its patches", "patches of such mail are its own",
         "patch finds its commit", "commits of a patch are its own",
         "mail finds the commits that it names"),
    )  # fmt: skip
    for row in truth:
        id, answers = bare(row["message_id"]), bare(row.get("answers"))
        group = group_of(id, _by(row["author"], row["date"]))
        for sha in row["shas"]:
            named.add(group, any(is_same(sha, one) for one in commits[id]))
        patches = {bare(x["message_id"]): x["sha"] for x in row["patches"] if x["message_id"]}
        if not patches and row["outcome"] == "applied" and answers and not row["patches"]:
            patches = {answers: None}
        for patch, sha in patches.items():
            by_commit = bool(sha) and any(is_same(sha, one) for one in commits[patch])
            found.add(group, patch in reasons[id] or by_commit)
            if sha:
                to_commit.add(group, by_commit)
        for patch in reasons[id] - covers if row["patches"] and patches else ():
            right.add(group, patch in patches)
        for patch, sha in patches.items():
            for one in commits[patch] if sha else ():
                right_commit.add(group, is_same(sha, one))
    return [found, right, to_commit, right_commit, named]


def is_same(one: str, other: str) -> bool:
    """Return True if two commit ids, whole or abbreviated, may name the same commit."""
    shortest = min(len(one), len(other))
    return shortest >= SHORTEST and one[:shortest] == other[:shortest]


def bare(id: str | None) -> str:
    """Return a Message-ID without its brackets."""
    return (id or "").strip().strip("<>")


def _by(author: str, date: str) -> str:
    return f"{author.split('<')[0].strip().lower()} {date[:10]}"


# --- the database of MAIL_HOME ---


class Home:
    """Answers of a filled database."""

    def __init__(self, connection: psycopg.Connection, about: Mapping[str, Discussed]) -> None:
        self._connection, self._about = connection, about
        rows = connection.execute("select message_id, thread_id from threads").fetchall()
        self._threads: dict[str, str] = dict(rows)

    def group_of(self, message_id: str, by: str) -> str:
        """Return the thread of a message, or else `by`."""
        return self._threads.get(message_id, by)

    def say_commits(
        self, shas: Sequence[str], hide: Callable[[CommitFacts], CommitFacts]
    ) -> Iterator[Row]:
        """Yield the links of commits; `hide` withholds facts about each commit."""
        for name, about in self._about.items():
            facts = read_facts(self._connection, [CommitKey(name, sha) for sha in shas])
            links = find_links(self._connection, [*map(hide, facts.values())], about)
            for sha, some in links.items():
                ids = [one.message_id for one in some]
                yield {"sha": sha, "message_ids": ids, "abstained": abstains(some)}

    def say_series(self, ids: Sequence[str]) -> Iterator[Row]:
        """Yield the versions of mails."""
        yield from describe_mails(self._connection, ids)

    def say_outcomes(self, ids: Sequence[str]) -> Iterator[Row]:
        """Yield the commits of mails, and the patches that mails report as applied."""
        for one in describe_mails(self._connection, ids):
            yield from ({"message_id": one["message_id"], "sha": sha} for sha in one["shas"])
        query = (
            "select s.message_id, s.reason_id, bool_or(p.kind = 'cover') from patch_series s "
            "join patches p using (message_id, place) "
            "where s.state = 'applied' and s.reason_id = any(%s) group by 1, 2"
        )
        for patch, mail, is_cover in self._connection.execute(query, ([*ids],)).fetchall():
            yield {"message_id": patch, "said_in": mail, "is_cover": is_cover}


#: Facts that are withheld. Of the dates, only the author's can be that of the mail.
WITHHELD: Mapping[str, Callable[[CommitFacts], CommitFacts]] = {
    "as they are": lambda one: one,
    "without trailers": lambda one: one._replace(named=()),
    "without trailers and titles": lambda one: one._replace(named=(), title_key=""),
    "without trailers and dates": lambda one: one._replace(named=(), authored_at=one.committed_at),
    "without trailers, dates and titles": lambda one: one._replace(
        named=(), title_key="", authored_at=one.committed_at
    ),
}


def score_home(folder: Path) -> Iterator[tuple[str, list[Measure]]]:
    """Yield the measures of the database of MAIL_HOME, with a title."""
    settings = load_settings()
    about = {name: Discussed(one.lists, one.prefix) for name, one in settings.repositories.items()}
    with settings.database.connect("patch truth") as connection:
        show_lists(connection, EVERY_LIST)
        home = Home(connection, about)
        commits = read_rows(folder / "commits.jsonl")
        for name, hide in WITHHELD.items():
            said = [*home.say_commits([row["sha"] for row in commits], hide)]
            yield f"commits, {name}", score_commits(commits, said, home.group_of)
        series = read_rows(folder / "series.jsonl")
        ids = [bare(one["message_id"]) for row in series for one in row["versions"]]
        yield "versions", score_series(series, home.say_series(ids), home.group_of)
        outcomes = read_rows(folder / "outcomes.jsonl")
        patches = {bare(x["message_id"]) for row in outcomes for x in row["patches"]} - {""}
        asked = [*patches, *(bare(row["message_id"]) for row in outcomes)]
        yield "outcomes", score_outcomes(outcomes, home.say_outcomes(asked), home.group_of)


def score_files(
    folder: Path, given: Mapping[str, Path | None]
) -> Iterator[tuple[str, list[Measure]]]:
    """Yield the measures of each given file of results, with its kind."""
    scorers = {"commits": score_commits, "series": score_series, "outcomes": score_outcomes}
    for name, path in given.items():
        if path:
            truth = read_rows(folder / f"{name}.jsonl")
            yield name, scorers[name](truth, read_rows(path), lambda _, by: by)


def main() -> None:
    """Print the measures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("truth", type=Path)
    kinds = ("commits", "series", "outcomes")
    for name in kinds:
        parser.add_argument(f"--{name}", type=Path)
    options = parser.parse_args()
    given = {name: getattr(options, name) for name in kinds}
    found = score_files(options.truth, given) if any(given.values()) else score_home(options.truth)
    for title, measures in found:
        print(title, *measures, "", sep="\n")


if __name__ == "__main__":
    main()

"""Measure the steps for patches, series, commits and links on a large invented corpus.

    python -m benchmarks.patches [COMMITS ...] [--home FOLDER]

The program creates a git repository of COMMITS invented commits, and 2.5 times as many messages of
a list over ten years. Of the commits, 70 % were mailed, half of these in two versions; committers
answer half of those. The other messages are discussion. It runs all steps four times: on the whole
corpus, with nothing new, with one more month of mail, and with one more day of commits.

For each step it prints wall time, processor time, peak memory of this process and of PostgreSQL,
and the tables that were read by sequential scans. With several sizes it also prints the exponent
of the growth between the last two: 1 is linear.
"""

import argparse
import json
import math
import random
import resource
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import psycopg

from benchmarks.processor import Seconds, postmaster_of, timed
from benchmarks.scale.fill import MemoryWatch
from mail_assets.mail.body.segments import segment_body
from mail_assets.month import ListMonth
from mail_assets.postgres.database import Database
from mail_assets.postgres.embedded import Cluster
from mail_assets.sources.repository import CommitSource
from mail_assets.sources.source import HttpOptions
from mail_assets.steps.build_threads import build_threads
from mail_assets.steps.group_series import group_series
from mail_assets.steps.link_commits import link_commits
from mail_assets.steps.read_commits import find_months_behind, read_month_commits
from mail_assets.steps.read_patches import make_patches
from mail_assets.store.open import open_store
from mail_assets.tables.commits import Discussed
from mail_assets.tables.partitions import Partition, State, write_state
from mail_assets.workspace import Workspace

LIST, REPOSITORY = "dev", "big"
MONTHS = 120
FIRST, LAST = 1_262_304_000, 1_577_836_800  # 2010 to 2019
DAY = 86_400
#: Messages per commit; shares of commits mailed, of those mailed twice, of those answered.
MESSAGES, MAILED, TWICE, ANSWERED = 2.5, 0.7, 0.5, 0.5
FILES, PEOPLE, LINES = 1_000, 300, 12
#: Minimum rows of sequential scans that are reported; fewer have no effect.
MANY = 2_000

COLUMNS = (
    "list, month, message_id, variant, content_hash, row_hash, sent_at, date_source, date_raw, "
    "subject, subject_base, from_name, from_email, reply_to, recipients, cc, in_reply_to, refs, "
    "list_id, body_kind, body_text, segments, attachments, identifiers, flags, search, topic, "
    "is_answer"
)
HEAD = """\
| run | asset | rows written | seconds | of processors | peak MB | of PostgreSQL | scans |
|---|---|---|---|---|---|---|---|"""
SCANS = "select relname, seq_tup_read from pg_stat_user_tables"


class Change(NamedTuple):
    """An invented commit, which replaces the lines of one file."""

    number: int
    at: int

    @property
    def title(self) -> str:
        """The subject."""
        return f"subsys{self.number % 97}: change number {self.number} of the harbour"

    @property
    def path(self) -> str:
        """The changed file."""
        return f"dir{self.number % 40}/f{self.number % FILES}.c"

    @property
    def person(self) -> str:
        """The author."""
        return f"a{self.number % PEOPLE}"

    def lines(self, version: int = 9) -> list[str]:
        """Return the new lines; in earlier versions the last lines differ."""
        chance = random.Random(self.number)
        found = [f"int value_{self.number}_{j} = {chance.randrange(10**6)};" for j in range(LINES)]
        return found if version == 9 else [*found[:-3], f"int first_try_{self.number};"]

    def diff(self, version: int = 9) -> str:
        """Return the diff in git's format."""
        new = self.lines(version)
        head = f"diff --git a/{self.path} b/{self.path}\n"
        if self.number < FILES:
            head += f"new file mode 100644\n--- /dev/null\n+++ b/{self.path}\n"
            head += f"@@ -0,0 +1,{len(new)} @@\n"
            old = []
        else:
            old = Change(self.number - FILES, 0).lines()
            head += f"--- a/{self.path}\n+++ b/{self.path}\n"
            head += f"@@ -1,{len(old)} +1,{len(new)} @@\n"
        return head + "".join(f"-{x}\n" for x in old) + "".join(f"+{x}\n" for x in new)


class Mail(NamedTuple):
    """An invented mail."""

    name: str
    at: int
    subject: str
    person: str
    body: str
    answers: tuple[str, ...] = ()


def changes(count: int, *, after: int = 0, first: int = FIRST, last: int = LAST) -> list[Change]:
    """Return invented commits in the order of their dates."""
    return [Change(after + n, first + (last - first) * n // count) for n in range(count)]


def mails(some: Sequence[Change], first: int = FIRST) -> Iterator[Mail]:
    """Yield the mail about commits: patches, answers of committers, discussion."""
    chance = random.Random(11)
    for change in some:
        sent, newest, wanted = 0, "", MESSAGES - 1 + chance.random()
        if chance.random() < MAILED:
            versions = (1, 9) if chance.random() < TWICE else (9,)
            for version in versions:
                label = "[PATCH v2]" if version == 9 and len(versions) == 2 else "[PATCH]"
                newest = f"p{change.number}.{version}@example.org"
                body = f"It was wrong before.\n---\n\n{change.diff(version)}--\n2.40\n"
                at = max(first, change.at - (3 if version == 9 else 12) * DAY)
                yield Mail(newest, at, f"{label} {change.title}", change.person, body)
                sent += 1
            if chance.random() < ANSWERED:
                body = "Applied, thanks!\n"
                name = f"t{change.number}@example.org"
                yield Mail(name, change.at, f"Re: {change.title}", "committer", body, (newest,))
                sent += 1
        talk: tuple[str, ...] = (newest,) if newest else ()
        while sent < wanted:
            name = f"d{change.number}.{sent}@example.org"
            body = "The crane of the harbour waits until the clock of the pier says otherwise. " * 6
            at = max(first, change.at - chance.randrange(3 * DAY))
            person = f"a{chance.randrange(PEOPLE)}"
            subject = f"{'Re: ' * bool(talk)}about {change.number}"
            yield Mail(name, at, subject, person, body, talk)
            talk = (*talk, name)[-20:]
            sent += 1


def month_of(at: int) -> str:
    """Return the month of a Unix time."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m}"


def fill_mail(connection: psycopg.Connection, some: Sequence[Change], first: int = FIRST) -> int:
    """Load the mail about commits and its monthly partitions; return the number of mails."""
    counts: Counter[str] = Counter()
    copy_in = f"copy messages ({COLUMNS}) from stdin"
    with connection.cursor() as cursor, cursor.copy(copy_in.encode()) as copy:
        for mail in mails(some, first):
            counts[month_of(mail.at)] += 1
            copy.write_row(make_row(mail))
    for month, count in counts.items():
        state = State(f"made {count}", f"{month} {count}", {"stored": count})
        write_state(connection, Partition("messages", ListMonth(LIST, month)), state)
    return counts.total()


def make_row(mail: Mail) -> tuple[object, ...]:
    """Return a row of the table messages."""
    sent = datetime.fromtimestamp(mail.at, UTC)
    parts = json.dumps([list(one) for one in segment_body(mail.body)])
    key = (LIST, month_of(mail.at), mail.name, 0, mail.name, mail.name[:32].encode())
    base = mail.subject.removeprefix("Re: ")
    people: tuple[object, ...] = (mail.person, f"{mail.person}@example.org", [], [], [])
    rest: tuple[object, ...] = (
        "",
        "plain",
        mail.body,
        parts,
        "[]",
        [],
        [],
        "",
        base,
        bool(mail.answers),
    )
    return (
        *(*key, sent, "date", "", mail.subject, base, *people),
        *([*mail.answers[-1:]], [*mail.answers], *rest),
    )


def write_commits(folder: Path, some: Sequence[Change]) -> None:
    """Add commits to a bare repository, which is created if it does not exist."""
    is_new = not folder.exists()
    if is_new:
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], check=True)
    command = ["git", f"--git-dir={folder}", "fast-import", "--quiet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        for place, change in enumerate(some):
            message = f"{change.title}\n\nIt was wrong before.\nReviewed-by: Bo <bo@example.org>\n"
            text = "".join(f"{line}\n" for line in change.lines())
            parent = "" if is_new or place else "from refs/heads/main^0\n"
            process.stdin.write(
                f"commit refs/heads/main\n"
                f"author {change.person} <{change.person}@example.org> {change.at - DAY} +0000\n"
                f"committer committer <committer@example.org> {change.at} +0000\n"
                f"data {len(message)}\n{message}{parent}"
                f"M 100644 inline {change.path}\ndata {len(text)}\n{text}\n".encode()
            )
        process.stdin.close()
        if process.wait():
            raise SystemExit("git fast-import failed")


class Bench:
    """Invented mail in a database, its repository, and the measured steps."""

    def __init__(self, connection: psycopg.Connection, folder: Path) -> None:
        self.connection, self.repository = connection, folder / "big.git"
        self.workspace = Workspace(connection, open_store(folder / "store"), lambda line: None)
        self.cache = folder / "cache"
        self.server = postmaster_of(connection)
        self.seconds: dict[str, Seconds] = {}

    def patches(self) -> int:
        """Read the patches of all months; return the rows written."""
        rows = self.connection.execute("select month from partitions where asset = 'messages'")
        months = sorted(month for (month,) in rows.fetchall())
        return sum(
            int(make_patches(self.workspace, ListMonth(LIST, month)).counts["written"])
            for month in months
        )

    def commits(self) -> int:
        """Read the commits of all months that have new ones."""
        source = CommitSource(REPOSITORY, str(self.repository), "", self.cache, HttpOptions())
        behind = find_months_behind(self.connection, {LIST: {REPOSITORY: source}})
        return sum(
            int(read_month_commits(self.workspace, one, {REPOSITORY: source}).counts["written"])
            for one in behind
        )

    def threads(self) -> int:
        """Build the threads that have changed."""
        return int(build_threads(self.connection, lambda line: None).counts["written"])

    def series(self) -> int:
        """Group the patches that have changed."""
        return int(group_series(self.connection, lambda line: None).counts["written"])

    def links(self) -> int:
        """Link the commits that have changed, or whose mail has changed."""
        return int(link_commits(self.workspace, {REPOSITORY: Discussed((LIST,))}).counts["written"])

    def run(self, what: str) -> None:
        """Run all steps and print a line for each."""
        steps: dict[str, Callable[[], int]] = {
            "threads": self.threads,
            "patches": self.patches,
            "patch_series": self.series,
            "commits": self.commits,
            "commit_links": self.links,
        }
        for name, step in steps.items():
            before = self.scanned()
            with MemoryWatch(self.server) as watch:
                written, seconds = timed(step, self.server)
            self.seconds[f"{what}: {name}"] = seconds
            after = self.scanned()
            read = {t: n - before.get(t, 0) for t, n in after.items()}
            scans = ", ".join(f"{t} {n:,}" for t, n in sorted(read.items()) if n >= MANY)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"| {what} | {name} | {written:,} | {seconds.clock:.1f} | {seconds.processor:.1f} "
                f"| {peak:.0f} | {watch.peak:.0f} | {scans} |",
                flush=True,
            )

    def scanned(self) -> dict[str, int]:
        """Return the number of rows that sequential scans have read, by table."""
        self.connection.execute("select pg_stat_force_next_flush()")
        return dict(self.connection.execute(SCANS).fetchall())


def measure(folder: Path, count: int) -> dict[str, Seconds]:
    """Fill a home and run the steps; return their times."""
    some = changes(count)
    cluster = Cluster(folder / "postgres")
    try:
        with Database(folder, cluster.start().dsn("postgres")).connect("bench") as connection:
            bench = Bench(connection, folder)
            write_commits(bench.repository, some)
            number = fill_mail(connection, some)
            connection.execute("vacuum (analyze) messages")
            print(f"\n{count:,} commits, {number:,} messages\n")
            print(HEAD)
            bench.run("all")
            connection.execute("vacuum (analyze)")
            bench.run("nothing new")
            month = count // MONTHS
            new = changes(month, after=count, first=LAST, last=LAST + 30 * DAY)
            fill_mail(connection, new, first=LAST)
            bench.run("a month of mail")
            write_commits(bench.repository, new[: max(1, month // 30)])
            bench.run("a day of commits")
            return bench.seconds
    finally:
        cluster.remove()


def main() -> None:
    """Measure each size and print the exponent between the last two."""
    parser = argparse.ArgumentParser(description="Measure patches, series, commits and links.")
    parser.add_argument("commits", nargs="*", type=int, default=[25_000, 100_000])
    parser.add_argument("--home", type=Path, help="folder for the temporary homes")
    arguments = parser.parse_args()
    found = []
    for count in arguments.commits:
        with tempfile.TemporaryDirectory(dir=arguments.home) as folder:
            found.append(measure(Path(folder), count))
    if len(found) > 1:
        print("\n| | exponent |\n|---|---|")
        growth = math.log(arguments.commits[-1] / arguments.commits[-2])
        for name, last in found[-1].items():
            exponent = math.log(last.processor / found[-2][name].processor) / growth
            print(f"| {name} | {exponent:.2f} |")


if __name__ == "__main__":
    main()

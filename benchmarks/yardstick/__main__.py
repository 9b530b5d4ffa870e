"""Measure search and patches on a public list and the repository that it discusses.

    python -m benchmarks.yardstick --list NAME=ARCHIVES --repository NAME=CLONE --out FOLDER
        [--dialect mboxrd] [--branch main] [--prefix WORD] [--plug NAME=COMMAND] [--only SYSTEM]

ARCHIVES is a folder of monthly mbox files, an mbox file, or a clone of a public-inbox; CLONE is a
git repository. FOLDER gets the mail, the repository without links to mail, the sets, the results
and the table. If the command was interrupted, run it again: it continues. The same input gives the
same files. docs/yardstick.md describes the sets, and how to measure another program.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from urllib.parse import quote

from benchmarks.pipeline import machine
from benchmarks.yardstick.corpus import (
    REPOSITORY,
    History,
    Mail,
    read_history,
    read_lines,
    read_mail,
    write_lines,
)
from benchmarks.yardstick.scores import MEASURES, Row, describe_sets, score, tabulate
from benchmarks.yardstick.sets import JudgedSet, make_sets, read_sets, write_sets
from benchmarks.yardstick.systems import (
    Home,
    PlugError,
    Result,
    Source,
    System,
    bm25,
    fill_home,
    fts5,
    naive,
    notmuch,
    our_patches,
    our_search,
    plug,
)
from mail_assets.errors import MailAssetsError

OURS = "mail-assets"


def main() -> None:
    """Make the sets, measure the systems, print the table."""
    arguments = read_arguments()
    try:
        run(arguments)
    except (MailAssetsError, PlugError) as error:
        sys.exit(f"yardstick: {error}")


def read_arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(
        description="Measure search and patches on a public list and its repository."
    )
    parser.add_argument("--list", required=True, type=named, metavar="NAME=ARCHIVES")
    parser.add_argument("--repository", required=True, type=named, metavar="NAME=CLONE")
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER")
    parser.add_argument("--dialect", default="mboxrd", help="of mbox files; default: mboxrd")
    parser.add_argument("--branch", default="", help="default: the branch of HEAD")
    parser.add_argument("--prefix", default="", help="word in the brackets of the list's patches")
    parser.add_argument(
        "--plug", type=named, action="append", default=[], metavar="NAME=COMMAND",
        help="also measure this program",
    )  # fmt: skip
    parser.add_argument(
        "--only", action="append", default=[], metavar="SYSTEM",
        help=f"measure only systems whose name begins so; {OURS}: this project",
    )  # fmt: skip
    return parser.parse_args()


def named(written: str) -> tuple[str, str]:
    """Return the two sides of NAME=VALUE."""
    name, sign, value = written.partition("=")
    if not (name and sign and value):
        raise argparse.ArgumentTypeError(f"{written!r} is not NAME=VALUE")
    return name, value


def run(arguments: argparse.Namespace) -> None:
    """Run the measurement."""
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    check_inputs(arguments, out / "inputs.json")
    name, archives = arguments.list
    repository, clone = arguments.repository
    report("reading mail")
    mails = read_mail(name, archives, arguments.dialect, out)
    report(f"{len(mails)} messages; reading commits")
    history = read_history(clone, arguments.branch, mails[0].sent, out)
    report(f"{len(history.commits)} commits; making sets")
    sets = read_sets(out / "sets")
    if not sets:
        sets = make_sets(mails, history)
        write_sets(sets, out / "sets")
    source = Source(
        name,
        str(Path(archives).resolve()) if Path(archives).exists() else archives,
        arguments.dialect,
        find_months(mails),
        repository,
        arguments.branch or "main",
        arguments.prefix,
    )
    systems = [*choose(mails, history, source, arguments)]
    rows = [row for one in sets for system in systems for row in measure(one, system, out)]
    lines = [*describe_sets(sets), "", *tabulate(rows)]
    (out / "table.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_lines(out / "figures.jsonl", map(as_json, rows))
    print("\n".join([f"machine: {machine()}", "", *lines]))


def check_inputs(arguments: argparse.Namespace, file: Path) -> None:
    """Store the inputs in the folder; exit if it has other inputs."""
    wanted = {
        name: getattr(arguments, name)
        for name in ("list", "repository", "dialect", "branch", "prefix")
    }
    text = json.dumps(wanted, indent=1)
    if file.exists() and file.read_text() != text:
        sys.exit(f"yardstick: {file.parent} has another list or repository; use another --out")
    file.write_text(text)


def find_months(mails: Sequence[Mail]) -> tuple[str, str]:
    """Return the first and the last month of the archives."""
    months = sorted({one.file[:7] for one in mails})
    return months[0], months[-1]


def choose(
    mails: Sequence[Mail], history: History, source: Source, arguments: argparse.Namespace
) -> Iterator[System]:
    """Yield the measured systems, in the order of the table."""
    out = arguments.out

    def wanted(name: str) -> bool:
        return not arguments.only or any(name.startswith(one) for one in arguments.only)

    @cache
    def open_home() -> Home:
        report(f"filling {out / 'home'} with {source.list_name} and {out / REPOSITORY}")
        return fill_home(source, out)

    systems = (
        *our_search(open_home),
        our_patches(open_home),
        notmuch(out),
        fts5(mails),
        bm25(mails),
        naive(mails, history, by_diff=False),
        naive(mails, history, by_diff=True),
        *(plug(*one) for one in arguments.plug),
    )
    yield from (one for one in systems if wanted(one.name))


def measure(judged: JudgedSet, system: System, out: Path) -> Iterator[Row]:
    """Yield the row of a system on a set; stored results are used again."""
    if judged.name not in system.sets:
        return
    if system.missing:
        yield Row(judged.name, system.name, {}, system.missing)
        return
    kept = (
        out
        / "results"
        / f"{judged.name}.{judged.digest}"
        / f"{quote(system.name, safe=' ,')}.jsonl"
    )
    if not kept.exists():
        report(f"asking {system.name} {len(judged.questions)} questions of {judged.name}")
        write_lines(kept, (one.as_json() for one in system.ask(judged.questions)))
    results = [Result(x["id"], (*x["found"],), x["note"]) for x in read_lines(kept)]
    yield score(judged, system.name, results)


def as_json(row: Row) -> dict[str, object]:
    """Return a row as a JSON object."""
    figures = {name: row.figures[name]._asdict() for name in MEASURES if name in row.figures}
    return {"set": row.set, "system": row.system, "figures": figures, "note": row.note}


def report(what: str) -> None:
    """Print the current activity to stderr."""
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

"""Command line of the scale report."""

import argparse
import json
import time
from pathlib import Path

from benchmarks.scale.report import read_results, tables
from benchmarks.scale.run import measure


def main() -> None:
    """Run a size, or report those that were run."""
    parser = argparse.ArgumentParser(description="What a backfill of a big corpus costs.")
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="fill a new home and append its figures")
    running.add_argument("corpus", type=Path)
    running.add_argument("home", type=Path)
    running.add_argument("results", type=Path)
    running.add_argument("--table", type=Path, help="vectors of the corpus's source")
    running.add_argument("--jobs", type=int, default=1, help="processes that fill months at once")
    reporting = commands.add_parser("report", help="print tables")
    reporting.add_argument("results", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "run":
        run = {"corpus": arguments.corpus.name, "began": time.time()}
        for part in measure(arguments.corpus, arguments.home, arguments.table, arguments.jobs):
            with arguments.results.open("a") as file:
                print(json.dumps({**run, **part}), file=file)
    for table in tables(read_results(arguments.results)):
        print(table, end="\n\n")


if __name__ == "__main__":
    main()

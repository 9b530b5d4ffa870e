"""Command line of the corpus; the docstring of the package describes its output."""

import argparse
import sys
import time
from pathlib import Path

from benchmarks.corpus.source import read_source
from benchmarks.corpus.write import Corpus, write_corpus


def main() -> None:
    """Write a corpus and print its curves; fail if they differ from those of real mail."""
    parser = argparse.ArgumentParser(description="Build a big corpus from real archives.")
    parser.add_argument("archives", type=Path, help="a folder with a folder of archives per list")
    parser.add_argument("out", type=Path, help="a new folder for the corpus")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--density", type=int, default=3, help="epochs in one month")
    parser.add_argument("--gzip", action="store_true", help="compress the archives")
    arguments = parser.parse_args()
    began = time.process_time()
    corpus = Corpus(read_source(arguments.archives), arguments.density)
    read = time.process_time() - began
    suffix = ".gz" if arguments.gzip else ""
    curves = write_corpus(corpus, arguments.out, arguments.messages, suffix)
    wrote = time.process_time() - began - read
    for table in curves.tables():
        print(table, end="\n\n")
    rate = curves.bytes / 1e6 / wrote
    print(f"processor: {read:.1f} s to read the source, {wrote:.1f} s to write, {rate:.1f} MB/s")
    if faults := [*curves.faults()]:
        sys.exit("differs from real mail: " + "; ".join(faults))


if __name__ == "__main__":
    main()

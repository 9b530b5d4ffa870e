"""Backfills killed at random points, again and again, against one that nobody disturbed.

    python -m benchmarks.killed_backfills ARCHIVES [--kills 50] [--jobs 2] [--seed 1]

ARCHIVES is a folder of monthly mbox files. One home is filled in peace. In another the same
command is killed (SIGKILL) after a random time, either its first process, or one of the others,
or all of them at once; then it is started again. Whenever a backfill gets to its end, the rest of
the kills are done in a fresh home. At every end each table, file and vector is compared with
those of the first home, but for times and counters; ends with 1 where anything differs.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.chaos_acts import running
from benchmarks.end_state import Digests, digest_home, list_differences
from benchmarks.pipeline import LIST, machine
from mail_assets.postgres.database import embedded
from mail_assets.settings.settings import load_settings

SETTLE = 0.2  # seconds between two looks at what is running


class Kill(NamedTuple):
    """One backfill that was started: after how many seconds what was killed, if it still ran."""

    seconds: float
    target: str | None


def main() -> None:
    """Fill, kill, compare, and print what happened."""
    parser = argparse.ArgumentParser(description="Compare killed backfills with a quiet one.")
    parser.add_argument("archives", type=Path, help="a folder of monthly mbox files")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    print(f"machine: {machine()}\ndata: {arguments.archives.name}, --jobs {arguments.jobs}")
    with tempfile.TemporaryDirectory() as folder:
        lists = Path(folder, "lists.toml")
        lists.write_text(f"[{LIST}]\nsource = {json.dumps(str(arguments.archives.resolve()))}\n")
        # always at the same place: an index is known by its bucket's
        place = Path(folder, "home")
        quiet = Home(place, lists, arguments.jobs)
        began = time.monotonic()
        quiet.finish()
        longest = time.monotonic() - began
        expected = quiet.digests()
        quiet.remove()
        print(
            f"undisturbed: {longest:.0f} s, {len(expected)} tables, files and indexes", flush=True
        )
        done, ends, differences = 0, 0, 0
        while done < arguments.kills:
            home = Home(place, lists, arguments.jobs)
            while done < arguments.kills:
                kill = home.kill(chance, longest)
                if kill.target is None:
                    break
                done += 1
                print(f"{done:3}: {kill.target} after {kill.seconds:.1f} s", flush=True)
            home.finish()
            found = home.digests()
            differing = list_differences(expected, found)
            ends, differences = ends + 1, differences + len(differing)
            print(f"end {ends}: {differing or 'as undisturbed'}", flush=True)
            home.remove()
    print(f"{done} kills, {ends} ends, {differences} differences")
    sys.exit(1 if differences else 0)


class Home:
    """A home of its own, with its own server, filled by the command line."""

    def __init__(self, path: Path, lists: Path, jobs: int) -> None:
        path.mkdir()
        self.path = path
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MAIL_")}
        self._environ = {**kept, "MAIL_HOME": str(path), "MAIL_LISTS": str(lists)}
        self._environ.pop("DAGSTER_HOME", None)
        self._command = [sys.executable, "-m", "mail_assets.cli", "backfill", "--jobs", str(jobs)]

    def finish(self) -> None:
        """Run the backfill to its end."""
        ended = subprocess.run(
            self._command, env=self._environ, capture_output=True, text=True, check=False
        )
        if ended.returncode:
            raise SystemExit(f"the backfill failed:\n{ended.stdout}\n{ended.stderr[-2000:]}")

    def kill(self, chance: random.Random, longest: float) -> Kill:
        """Start the backfill, and kill some of it within `longest` seconds, if it lasts."""
        process = subprocess.Popen(
            self._command,
            env=self._environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        seconds = chance.uniform(1, longest)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            target = self._kill_some(process.pid, chance)
            process.wait()
            while [*running(self.path)]:
                time.sleep(SETTLE)
            return Kill(seconds, target)
        return Kill(seconds, None)

    def _kill_some(self, first: int, chance: random.Random) -> str:
        others = [pid for pid in running(self.path) if pid != first]
        what = chance.choice(["the first process", "another process", "all processes"])
        if what == "another process" and others:
            os.kill(chance.choice(others), signal.SIGKILL)
            os.kill(first, signal.SIGKILL)
            return "another process, then the first"
        victims = [first] if what == "the first process" else [first, *others]
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        return what

    def digests(self) -> Digests:
        """Return a digest of each table, file of the store and index of vectors or words."""
        return digest_home(load_settings(self._environ))

    def remove(self) -> None:
        """Stop the server and delete the home."""
        embedded(self.path).remove()
        shutil.rmtree(self.path)


if __name__ == "__main__":
    main()

"""Searches by a process on standby have the same output, and never outdated answers."""

import contextlib
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mail_assets.cli import standby
from mail_assets.cli.standby import ask_standby, find_socket
from mail_assets_tests.cli.conftest import spawn
from mail_assets_tests.sample_corpus import ROOT, Corpus
from mail_assets_tests.waits import wait_until
from mail_assets_tests.world import APRIL, World, mail

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it needs Linux")

STAYS = {"MAIL_STANDBY_MINUTES": "5"}


def find_process(path: Path) -> int:
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as connection:
        with standby._short(path) as name:
            connection.connect(name)
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int(struct.unpack("3i", credentials)[0])


def sockets(home: Path) -> list[Path]:
    """Return the sockets of a home that were made and not moved to their place since."""
    return [path for path in home.glob(".search-*.sock") if len(path.stem) == len(".search-") + 24]


@contextlib.contextmanager
def ending_others(home: Path) -> Iterator[list[Path]]:
    """End the processes on standby that start within the block; the list has them afterwards."""
    before, started = sockets(home), list[Path]()
    yield started
    started += [path for path in sockets(home) if path not in before]
    for path in started:
        os.kill(find_process(path), signal.SIGKILL)
        path.unlink()


@contextlib.contextmanager
def standing_by(environ: dict[str, str]) -> Iterator[Path]:
    """Search once; yield the socket of the process on standby; end it."""
    home = Path(environ["MAIL_HOME"])
    done = spawn(["search", "lease", "--mode", "fulltext"], environ | STAYS)
    assert (done.returncode, done.stderr.count(b"Traceback")) == (0, 0)
    wait_until(lambda: bool(sockets(home)))
    [path] = sockets(home)
    process = find_process(path)
    try:
        yield path
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        path.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def ready(corpus: Corpus) -> Iterator[dict[str, str]]:
    """The environment of the sample lists, in which a process stands by."""
    environ = corpus.environ | STAYS
    with standing_by(environ):
        yield environ


def run_both(
    environ: dict[str, str], *arguments: str, shell: str = ""
) -> list[tuple[int, bytes, bytes]]:
    """Run a command by itself, and by the process on standby; leave out the time it took."""
    found = []
    for minutes in ("0", "5"):
        done = spawn([*arguments], environ | {"MAIL_STANDBY_MINUTES": minutes}, shell)
        out, err = (
            re.sub(rb'(?<= in )\d+(?= ms)|"(ms|took_ms)": ({[^}]*}|[\d.]+)|ms: {.*}', b"", text)
            for text in (done.stdout, done.stderr)
        )
        found.append((done.returncode, out, err))
    return found


@pytest.mark.parametrize(("arguments", "shell"), [
    (("search", "lease ran out"), ""),
    (("search", "lease ran out", "--json", "--limit", "3", "--mode", "fulltext"), "< /dev/null"),
    (("search", "lease", "--explain", "--facets", "--mode", "fulltext"), ""),
    (("search", "lease mode:fulltext"), "2> /dev/null | cat"),
    (("search", "lease mode:fulltext"), "<&-"),
    (("search", "lease mode:fulltext"), ">&-"),
    (("search", "d\u00edas \u00f1and\u00fa \N{SNOWMAN} mode:fulltext", "--list", "harbor-dev"), ""),
    (("search", "has:pach"), ""),
    (("search", "--bogus"), ""),
    (("similar", ROOT), ""),
    (("similar", "nobody@example.org"), ""),
    (("answer", "when does a lease expire", "--passages"), ""),
])  # fmt: skip
def test_output_is_the_same_in_every_byte(
    ready: dict[str, str], arguments: tuple[str, ...], shell: str
) -> None:
    alone, asked = run_both(ready, *arguments, shell=shell)
    assert asked == alone


@pytest.mark.parametrize(
    "changes",
    [
        {"MAIL_LISTS": "/does/not/exist.toml"},
        {"MAIL_VECTORS": "nonsense:"},
        {"MAIL_PG_DSN": "postgresql://nobody@127.0.0.1:1/none?connect_timeout=1"},
        {"PYTHONIOENCODING": "latin-1:replace"},
        {"NO_COLOR": "1", "TERM": "dumb"},
    ],
)
def test_variables_of_the_command_hold(ready: dict[str, str], changes: dict[str, str]) -> None:
    with ending_others(Path(ready["MAIL_HOME"])):
        alone, asked = run_both(ready | changes, "search", "lease ran out mode:fulltext")
    assert asked == alone


def test_lists_are_those_of_the_command(ready: dict[str, str], tmp_path: Path) -> None:
    fewer = tmp_path / "lists.toml"
    text = Path(ready["MAIL_LISTS"]).read_text()
    fewer.write_text("[harbor-dev]" + text.partition("[harbor-dev]")[2].partition("\n[")[0])
    alone, asked = run_both(ready | {"MAIL_LISTS": str(fewer)}, "search", "list:harbor-users x")
    assert asked == alone
    assert (asked[0], b"harbor-dev" in asked[2]) == (2, True)


def test_files_are_named_from_the_folder_of_the_command(
    ready: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "lease"}\n')
    program = f"import os; os.chdir({str(tmp_path)!r}); from mail_assets.cli import main; main()"
    command = [sys.executable, "-c", program, "search", "--queries", "queries.jsonl"]
    done = subprocess.run(command, env=os.environ | ready, capture_output=True, check=False)
    assert (done.returncode, done.stdout[:12]) == (0, b'{"query_id":')


def test_socket_is_private_and_in_the_home(ready: dict[str, str]) -> None:
    [path] = sockets(Path(ready["MAIL_HOME"]))
    assert path.stat().st_mode & 0o777 == 0o600


def test_answer_is_of_the_mail_that_is_stored_now(world: World, model_cache: Path) -> None:
    world.load(mail("a", "okapi"), last="vectors")
    environ = world.environ() | STAYS | {"MAIL_MODEL_DIR": str(model_cache)}

    def find() -> set[bytes]:
        asked = ["search", "okapi", "--mode", "fulltext"]
        return {*re.findall(rb"<(\w+)@example.org>", spawn(asked, environ).stdout)}

    with standing_by(environ):
        assert find() == {b"a"}
        world.load(
            mail("b", "okapi", date="Mon, 01 Apr 2024 09:00:00 +0000"), month=APRIL, last="vectors"
        )
        assert find() == {b"a", b"b"}
        assert spawn(["forget", "a@example.org", "--reason", "asked"], environ).returncode == 0
        assert find() == {b"b"}


#: A command that can be interrupted and ended, also where what runs the tests ignores signals.
_INTERRUPTIBLE = """\
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
from mail_assets.cli import main
main()
"""


@contextlib.contextmanager
def reading_search(ready: dict[str, str], queries: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a command whose search waits for more queries; what it reads ends afterwards."""
    os.mkfifo(queries)
    command = [sys.executable, "-c", _INTERRUPTIBLE, "search", "--queries", str(queries)]
    with (
        subprocess.Popen(command, env=os.environ | ready, stderr=subprocess.PIPE) as search,
        contextlib.suppress(BrokenPipeError),
        queries.open("w") as file,
    ):
        yield search
        while True:  # until nobody reads any more
            file.write("\n")
            file.flush()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, -15), (signal.SIGINT, 1)])
def test_signal_ends_the_search(
    ready: dict[str, str], tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with reading_search(ready, tmp_path / "queries") as search:
        search.send_signal(number)
        _, said = search.communicate()
        assert search.returncode == code
        assert said.endswith(b"Aborted!\n" if number == signal.SIGINT else b"")


def test_killed_command_ends_its_search(ready: dict[str, str], tmp_path: Path) -> None:
    with reading_search(ready, tmp_path / "queries") as search:
        search.kill()
        search.wait()


def test_two_processes_leave_one_socket(bare: dict[str, str]) -> None:
    home = Path(bare["MAIL_HOME"])
    home.mkdir()
    program = (
        "from pathlib import Path; from mail_assets.cli import standby; "
        f"print(standby.find_socket(Path({str(home)!r})))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    path = Path(found.stdout.decode().strip())
    program = f"import os; {standby._START}"
    command = [sys.executable, "-c", program.replace("sys.argv[1:]", "sys.argv[1:], os.dup(1)")]
    processes = [subprocess.Popen([*command, str(path), "5"], cwd="/") for _ in range(2)]
    try:
        wait_until(path.exists)
        first = find_process(path)
        assert first in {one.pid for one in processes}
        [other] = [one for one in processes if one.pid != first]
        wait_until(lambda: other.poll() is not None or find_process(path) == other.pid)
        assert [*home.iterdir()] == [path]
    finally:
        for one in processes:
            one.kill()
            one.wait()


def test_first_search_is_run_by_the_process_that_stays(corpus: Corpus) -> None:
    environ = corpus.environ | STAYS | {"PYTHONHASHSEED": "7"}
    program = """\
import sys
from mail_assets.cli import main
try:
    main()
finally:
    print("lancedb" in sys.modules, file=sys.stderr)
"""
    command = [sys.executable, "-c", program, "search", "lease"]
    with ending_others(Path(environ["MAIL_HOME"])) as started:
        done = subprocess.run(command, env=os.environ | environ, capture_output=True, check=True)
    assert (len(started), done.stderr[-6:], b"lease" in done.stdout) == (1, b"False\n", True)


def test_wrong_search_starts_no_process(corpus: Corpus) -> None:
    home = Path(corpus.environ["MAIL_HOME"])
    before = sockets(home)
    assert spawn(["search", "has:pach"], corpus.environ | STAYS).returncode == 2
    assert sockets(home) == before


def test_left_socket_is_replaced(corpus: Corpus) -> None:
    environ = corpus.environ | STAYS
    home = Path(environ["MAIL_HOME"])
    with standing_by(environ) as path:
        killed = find_process(path)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: not standby._is_answered(path))
        assert spawn(["search", "lease", "--mode", "fulltext"], environ).returncode == 0
        wait_until(lambda: any(map(standby._is_answered, sockets(home))))
        assert find_process(path) != killed
        os.kill(find_process(path), signal.SIGKILL)


def test_stuck_process_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standby, "PATIENCE", 0.01)
    path = tmp_path / "stuck.sock"
    with contextlib.closing(standby._listen(path)):
        assert ask_standby(path, "mail-assets", ["search", "x"]) is None
    assert not path.exists()


def ask_other(path: Path, said: bytes, until: bytes = b"") -> int | None:
    """Ask a process that says something, reads up to some bytes, and ends; return the code."""
    listener = standby._listen(path)

    def answer() -> None:
        connection, _ = listener.accept()
        connection.sendall(said)
        while until and connection.recv(1 << 16)[-len(until) :] != until:
            pass
        connection.close()

    thread = threading.Thread(target=answer)
    thread.start()
    code = ask_standby(path, "mail-assets", ["search", "x"])
    thread.join()
    listener.close()
    return code


@pytest.mark.parametrize("said", [b"", b"read", b"never"])
def test_process_that_says_something_else_is_left(tmp_path: Path, said: bytes) -> None:
    assert ask_other(tmp_path / "other.sock", said) is None


def test_crash_of_a_search_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask_other(tmp_path / "crash.sock", standby._READY, standby._GO) == 1
    assert "ended before it had an answer" in capsys.readouterr().err


def test_socket_names_code_variables_and_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def name() -> Path | None:
        return find_socket(tmp_path)

    changes: tuple[Callable[[], None], ...] = (
        lambda: monkeypatch.setattr(standby, "_list_code", lambda: [("x.py", 1, 2)]),
        lambda: monkeypatch.setenv("LANCEDB_LOG", "debug"),
        lambda: monkeypatch.setenv("OMP_NUM_THREADS", "1"),
        lambda: monkeypatch.setattr(sys, "executable", "/usr/bin/other"),
        lambda: monkeypatch.setattr(os, "getgroups", lambda: [77]),
        lambda: monkeypatch.setattr(os, "getpriority", lambda *_: 19),
    )
    names = {name()}
    for change in changes:
        change()
        assert name() not in names
        names.add(name())
    monkeypatch.setenv("MAIL_PRECISION", "fp32")  # read by each search
    assert name() in names


def test_no_socket_where_there_can_be_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_socket(tmp_path / "none") is None
    assert not (tmp_path / "none").exists()
    monkeypatch.setattr(os, "access", lambda *_: False)  # a folder that is mounted to be read
    assert find_socket(tmp_path) is None
    monkeypatch.undo()
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000)
    assert find_socket(tmp_path) is None

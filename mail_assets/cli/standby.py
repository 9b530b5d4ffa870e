"""A standby process that has imported everything for a search, and runs searches of its user.

Importing LanceDB takes a second of CPU time, a search a quarter of a second. So the first search
starts a standby process. It runs this search and the following ones, and ends after some minutes
without a search. It is a forkserver: it opens nothing, and forks a process for each search. The
fork takes over the arguments, environment, folder, standard input, output and error of the calling
command, and runs the command from its first line to its exit code. So the output is the same as
without a standby process.

A command uses a standby process only if that has the same code, interpreter, account, limits and
namespaces. A digest of these is part of the name of the socket. The socket is in the home, and only
its user can open it. A command that gets no answer runs in its own process.

https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods
"""

import atexit
import contextlib
import hashlib
import importlib
import json
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import mail_assets
from mail_assets.environment import VARIABLES, replace_environment
from mail_assets.files import sql_folder

#: Commands that the standby process runs.
COMMANDS = ("search", "similar", "answer")
#: Modules that these commands import when they run.
PRELOADED = (
    *("mail_assets.cli.search", "mail_assets.search.open"),
    *("mail_assets.search.language.syntax", "mail_assets.search.response"),
    *("mail_assets.answers.answer", "mail_assets.answers.chat", "mail_assets.answers.evidence"),
    *("mail_assets.words.lance", "mail_assets.vectors.lance", "mail_assets.cli.answer"),
    *("mail_assets.encoding.local_encoder", "mail_assets.encoding.static_encoder"),
    *("mail_assets.postgres.embedded", "tokenizers", "onnxruntime"),
)
#: Prefixes of the variables that Python and libraries read when they are imported.
_READ_AT_IMPORT = (
    *("PYTHON", "LD_", "LC_", "LANG", "LANCE", "RUST_", "ARROW_", "OMP_", "OPENBLAS_", "MKL_"),
    *("GOTO_", "NPY_", "ORT_", "RAYON_", "TOKENIZERS_", "MALLOC_", "GLIBC_", "MIMALLOC_"),
)
#: The program of the standby process.
_START = "import sys; from mail_assets.cli import standby; standby.main(*sys.argv[1:])"
#: Seconds after which a process that does not answer is considered stuck.
PATIENCE = 5.0
#: Seconds between two checks that the socket file still belongs to this process.
_LOOK = 20.0
#: Seconds after which an unhandled interrupt is sent again.
_AGAIN = 0.1
#: Signals that a command passes on.
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_READY, _GO = b"ready", b"go"
_SIZE, _STATUS = struct.Struct("!I"), struct.Struct("!i")


def find_socket(home: Path) -> Path | None:
    """Return the path of the socket that this command may use, None if there can be none.

    There is none if the home does not exist, is not writable or belongs to another account. There
    is none on systems other than Linux.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        owner = home.stat().st_uid
    except OSError:
        return None
    if owner != os.geteuid() or not os.access(home, os.W_OK | os.X_OK):
        return None
    return home / f".search-{_digest_process()}.sock"


def _digest_process() -> str:
    """Return a digest of what a process keeps from its start: code, variables, limits."""
    libraries = Path(importlib.import_module("click").__file__ or "").parents[1]
    limits = sorted(name for name in vars(resource) if name.startswith("RLIMIT_"))
    facts = {
        "code": [*_list_code()],
        "python": [sys.executable, sys.version, [*sys.flags], sys.path[1:]],
        "libraries": libraries.stat().st_mtime_ns,
        "variables": sorted(i for i in VARIABLES.items() if i[0].startswith(_READ_AT_IMPORT)),
        "account": [os.getresuid(), os.getresgid(), os.getgroups()],
        "limits": [resource.getrlimit(getattr(resource, name)) for name in limits],
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "cores": sorted(os.sched_getaffinity(0)),
        "namespaces": [str(one.readlink()) for one in sorted(Path("/proc/self/ns").iterdir())],
        "started": Path("/proc/sys/kernel/random/boot_id").read_text(),
    }
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]


def _list_code() -> Iterator[tuple[str, int, int]]:
    for root in (Path(mail_assets.__file__).parent, sql_folder()):
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(one for one in folders if one != "__pycache__")
            for name in sorted(names):
                facts = Path(folder, name).stat()
                yield f"{folder}/{name}", facts.st_mtime_ns, facts.st_size


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """Yield a short name for a socket, because the name has at most 107 bytes (man 7 unix)."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _connect(path: Path) -> socket.socket | None:
    """Return a connection to a standby process of this user, None if there is none."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(PATIENCE)
    try:
        with _short(path) as name:
            connection.connect(name)
        if _peer(connection) == os.geteuid():
            return connection
    except OSError:
        pass
    connection.close()
    return None


def _peer(connection: socket.socket) -> int:
    size = struct.calcsize("3i")
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    _, user, _ = struct.unpack("3i", credentials)
    return int(user)


def ask_standby(path: Path, program: str, arguments: Sequence[str]) -> int | None:
    """Let the standby process run a command; return the exit code, None if it must run here."""
    if None in (sys.stdin, sys.stdout, sys.stderr):  # a closed stream cannot be passed on
        return None
    connection = _connect(path)
    if connection is None:
        return None
    with connection:
        try:
            asked = json.dumps(
                {
                    "program": program,
                    "arguments": [*arguments],
                    "environment": dict(VARIABLES),
                    "folder": str(Path.cwd()),
                }
            ).encode()
            socket.send_fds(connection, [_SIZE.pack(len(asked))], [0, 1, 2])
            connection.sendall(asked)
            ready = _receive(connection, len(_READY)) == _READY
        except TimeoutError:  # it is stuck: the next command starts another process
            path.unlink(missing_ok=True)
            return None
        except OSError:  # it has ended, or the folder of this command is gone
            return None
        if not ready:
            return None
        connection.settimeout(None)
        with _passing_signals_on(connection) as passed:
            with contextlib.suppress(OSError):  # it has just ended
                connection.sendall(_GO)
            status = _receive(connection, _STATUS.size)
        if status:
            return int(_STATUS.unpack(status)[0])
        for number in passed:  # a signal ended it, so the same signal ends this process
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        print("mail-assets: the search ended before it had an answer; try again", file=sys.stderr)
        return 1


def _receive(connection: socket.socket, size: int) -> bytes:
    """Return `size` bytes from the other end, b"" if it closes the connection first."""
    data = bytearray()
    while len(data) < size:
        try:
            part = connection.recv(size - len(data))
        except ConnectionResetError:  # it ended without reading all
            part = b""
        if not part:
            return b""
        data += part
    return bytes(data)


@contextlib.contextmanager
def _passing_signals_on(connection: socket.socket) -> Iterator[list[int]]:
    passed: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        passed.append(number)
        with contextlib.suppress(OSError):
            connection.sendall(bytes([number]))

    former = {
        one: signal.signal(one, pass_on)
        for one in _PASSED_ON
        if signal.getsignal(one) is not signal.SIG_IGN
    }
    try:
        yield passed
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def start_standby(path: Path, minutes: int, environment: Mapping[str, str]) -> None:
    """Start a standby process and wait until it is ready; it ends if there is one already.

    `environment` has the variables that this process started with: libraries have set others since.
    """
    waiting_end, ready = os.pipe()
    with os.fdopen(waiting_end, "rb") as waiting:
        with os.fdopen(ready, "wb"), contextlib.suppress(OSError):
            subprocess.Popen(
                [sys.executable, "-c", _START, str(path), str(minutes), str(ready)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
                env=environment,
                pass_fds=[ready],
            )
        waiting.read()  # returns when the process closes its end, or exits


def main(place: str, minutes: str, ready: str) -> None:
    """Import what searches need, and fork a process for each; end after `minutes` without one.

    `ready` is a file descriptor. It is closed when commands can be sent; the parent waits for that.
    """
    path, patience = Path(place), int(minutes) * 60
    if find_socket(path.parent) != path or _is_answered(path):
        return
    code = [*_list_code()]
    for name in PRELOADED:
        importlib.import_module(name)
    # the warning does not apply: LanceDB is imported, but not running yet
    warnings.filterwarnings("ignore", message="lancedb fork support", category=RuntimeWarning)
    if [*_list_code()] != code:  # modules of two versions may have been imported
        return
    _remove_stale(path.parent)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended processes leave no zombies
    with _listen(path) as listener:
        os.close(int(ready))
        own = path.stat()
        ends = time.monotonic() + patience
        while (left := ends - time.monotonic()) > 0 and _is_at(path, own):
            if select.select([listener], [], [], min(left, _LOOK))[0]:
                connection, _ = listener.accept()
                if os.fork() == 0:
                    listener.close()
                    _run_command(connection)
                connection.close()
                ends = time.monotonic() + patience
        if _is_at(path, own):
            path.unlink()


def _is_answered(path: Path) -> bool:
    connection = _connect(path)
    if connection is not None:
        connection.close()
    return connection is not None


def _is_at(path: Path, place: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), place)
    except OSError:
        return False


def _remove_stale(home: Path) -> None:
    for path in home.glob(".search-*.sock"):
        if not _is_answered(path):
            path.unlink(missing_ok=True)


def _listen(path: Path) -> socket.socket:
    """Return a listening socket; its file replaces an existing one atomically."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    fresh = path.with_name(f".search-{os.getpid()}.sock")
    fresh.unlink(missing_ok=True)
    former = os.umask(0o177)  # before bind, so that others can never connect
    with _short(fresh) as name:
        listener.bind(name)
    os.umask(former)
    listener.listen(64)
    fresh.rename(path)
    return listener


def _run_command(connection: socket.socket) -> None:
    """Run the requested command as the calling process would; end this process."""
    for number in (signal.SIGCHLD, *_PASSED_ON):  # the first command may have ignored them
        signal.signal(number, signal.SIG_DFL)
    interrupted = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        connection.settimeout(PATIENCE)
        asked = _take_over(connection)
        connection.sendall(_READY)
        if asked is None or _receive(connection, len(_GO)) != _GO:
            os._exit(0)
        connection.settimeout(None)
    except OSError:
        os._exit(0)
    threading.Thread(target=_follow_signals, args=(connection, interrupted), daemon=True).start()
    code = _run(asked["program"], asked["arguments"])
    with contextlib.suppress(OSError):
        connection.sendall(_STATUS.pack(code))
    os._exit(0)


def _take_over(connection: socket.socket) -> dict[str, Any] | None:
    if _peer(connection) != os.geteuid():
        return None
    size, files, _, _ = socket.recv_fds(connection, _SIZE.size, 3)
    if len(size) < _SIZE.size or len(files) != 3:
        return None
    asked: dict[str, Any] = json.loads(_receive(connection, _SIZE.unpack(size)[0]) or b"{}")
    if not asked:
        return None
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(asked["folder"])
    replace_environment(asked["environment"])
    time.tzset()
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
    sys.argv = [asked["program"], *asked["arguments"]]
    return asked


def _follow_signals(connection: socket.socket, interrupted: threading.Event) -> None:
    """Send this process the signals that the calling command gets; end it if that has ended.

    Python may not handle a signal that arrives just before a blocking read. Sending the signal
    again interrupts the read.
    """
    main = threading.main_thread().ident or 0  # in another thread a signal interrupts no read
    number = b""
    with contextlib.suppress(OSError):
        while True:
            is_unseen = number == bytes([signal.SIGINT]) and not interrupted.is_set()
            if select.select([connection], [], [], _AGAIN if is_unseen else None)[0]:
                number = connection.recv(1)
                if not number:
                    break
                interrupted.clear()
            elif interrupted.is_set():
                continue
            signal.pthread_kill(main, number[0])
    os._exit(1)


def _run(program: str, arguments: Sequence[str]) -> int:
    from mail_assets.cli import main

    code: Any = 0
    try:
        main.main([*arguments], prog_name=program)
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # Python exits with 120 in this case
            code = code or 120
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr, flush=True)
    return 1

"""The lock around encoding: one process at a time for a folder of models, however it ends."""

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

from mail_assets.encoding.local_encoder import encoder_lock
from mail_assets_tests.waits import LONG

HOLD = """
import sys
from pathlib import Path
from mail_assets.encoding.encoder_lock import encoder_lock

with encoder_lock(Path(sys.argv[1]), print):
    print("held", flush=True)
    sys.stdin.read()
"""


def is_free(folder: Path) -> bool:
    """Try the lock as another process would, without waiting."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def fail() -> None:
    raise AssertionError("there is nobody to wait for")


def test_others_wait_while_it_is_held_and_report_it(tmp_path: Path) -> None:
    waits, entered = threading.Event(), threading.Event()

    def encode() -> None:
        with encoder_lock(tmp_path, waits.set):
            entered.set()

    other = threading.Thread(target=encode)
    with encoder_lock(tmp_path, fail):
        assert not is_free(tmp_path)
        other.start()
        assert waits.wait(LONG)
        assert not entered.is_set()
    other.join(LONG)
    assert entered.is_set()
    assert is_free(tmp_path)


def test_an_error_frees_it(tmp_path: Path) -> None:
    try:
        with encoder_lock(tmp_path, fail):
            raise MemoryError
    except MemoryError:
        pass
    assert is_free(tmp_path)


def test_a_killed_process_frees_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        assert not is_free(tmp_path)
        holder.kill()
        holder.wait()
        assert is_free(tmp_path)


def test_a_folder_that_is_missing_is_made_and_one_that_is_read_only_will_do(tmp_path: Path) -> None:
    folder = tmp_path / "models" / "new"
    with encoder_lock(folder, fail):
        assert not is_free(folder)
    folder.chmod(0o555)
    with encoder_lock(folder, fail):
        assert not is_free(folder)
        assert [*folder.iterdir()] == []

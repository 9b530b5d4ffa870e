"""The lock of a cache folder."""

import fcntl
import os
from pathlib import Path

import pytest

from mail_assets.sources.message_source import hold_folder
from mail_assets.sources.open import open_source
from mail_assets.sources.source import HttpOptions
from mail_assets_tests.sources.mails import mail


def is_held(folder: Path) -> bool:
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def test_folder_is_made_and_held_until_the_block_ends(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with hold_folder(folder):
        assert is_held(folder)
    assert not is_held(folder)
    with pytest.raises(ZeroDivisionError), hold_folder(folder):
        raise ZeroDivisionError
    assert not is_held(folder)


def test_new_messages_are_looked_at_by_one_process_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mail").mkdir()
    (tmp_path / "mail" / "a.eml").write_bytes(mail(1))
    held: list[bool] = []
    cache = tmp_path / "cache"

    def look(raw: bytes, arrived: object) -> str:
        [folder] = cache.iterdir()
        held.append(is_held(folder))
        return "2024-03"

    monkeypatch.setattr("mail_assets.sources.message_source.month_of_message", look)
    source = open_source(
        "dev", str(tmp_path / "mail"), start="2024-01", options=HttpOptions(), cache=cache
    )
    source.versions()
    assert held == [True]

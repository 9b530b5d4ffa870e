"""Which account runs the server: our own, or for root one that exists."""

import os

import pytest

from mail_assets.postgres.errors import PostgresError
from mail_assets.postgres.programs import ServerAccount, server_account


def test_an_ordinary_user_keeps_its_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    assert server_account() == ServerAccount(1234, os.getegid(), {})


@pytest.mark.parametrize("named", ["", "nobody"])
def test_root_drops_to_an_account_that_exists(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("MAIL_PG_USER", named)
    account = server_account()
    assert account.uid != 0
    assert account.switch == {"user": account.uid, "group": account.gid, "extra_groups": []}


def test_an_account_that_does_not_exist_is_no_reason_to_take_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("MAIL_PG_USER", "no-such-user-here")
    with pytest.raises(PostgresError, match="no account no-such-user-here: set MAIL_PG_USER"):
        server_account()

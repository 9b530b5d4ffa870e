"""A time limit for listing several lists that ends by a test's decision, not by the clock."""

from collections.abc import Mapping
from concurrent.futures import Future

import pytest

from mail_assets.sources import source
from mail_assets_tests.waits import wait_until


def end_time_after(monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
    """End the time for listings when these lists have answered and another is being asked."""

    def wait(futures: Mapping[Future[object], str], timeout: float) -> None:
        wait_until(
            lambda: (
                all(future.done() for future, name in futures.items() if name in answers)
                and any(future.running() for future in futures)
            )
        )

    monkeypatch.setattr(source, "wait", wait)

"""A Celery task that runs until a file exists, in place of a Dagster run."""

import time
from pathlib import Path

from celery import Celery

app = Celery("tasks")


def _wait_for_file(path: str) -> None:
    while not Path(path).exists():
        time.sleep(0.05)


wait_for_file = app.task(_wait_for_file, name="wait_for_file", track_started=True)

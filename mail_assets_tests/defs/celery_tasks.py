"""A Celery task that lasts until it is told to end: it stands for a run of Dagster."""

import time
from pathlib import Path

from celery import Celery

app = Celery("tasks")


def _wait_for_file(path: str) -> None:
    """Last until a file is there."""
    while not Path(path).exists():
        time.sleep(0.05)


wait_for_file = app.task(_wait_for_file, name="wait_for_file", track_started=True)

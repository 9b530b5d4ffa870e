"""Upkeep of a LanceDB table gives way to its writers, tries again, and leaves no memory behind."""

from collections.abc import Callable

from mail_assets.lance.errors import lance_errors
from mail_assets.processes.memory import release_freed_memory

ATTEMPTS = 3


def run_between_writers(work: Callable[[], None], label: str, errors: type[RuntimeError]) -> None:
    """Run `work`, again where a writer was faster; `label` names the table in errors.

    Raises:
        RuntimeError: of the kind `errors`, where LanceDB fails, or writers interrupted every
            attempt.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with lance_errors(label, errors):
                work()
            return
        except errors as error:
            if "commit conflict" not in str(error):
                raise
            if attempt == ATTEMPTS:
                raise errors(
                    f"{label}: writers interrupted {attempt} attempts to maintain it; nothing is "
                    "lost; run it again when fewer partitions are being written"
                ) from error
        finally:
            release_freed_memory()

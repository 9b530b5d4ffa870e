"""What a run prints while it works, on standard error: the time, and one short line.

Dagster's own console logger puts the job, the run's id and the process before each line. The
event log of the run keeps all of that; a person who waits for a backfill needs none of it.
https://docs.dagster.io/guides/log-debug/logging
"""

import logging
import sys

import dagster as dg


class _Line(logging.Formatter):
    """The message as it was said, without Dagster's prefix."""

    def format(self, record: logging.LogRecord) -> str:
        """Return "HH:MM:SS message"; what went wrong carries its level."""
        about = getattr(record, "dagster_meta", None) or {}
        said = about.get("orig_message") or record.getMessage()
        level = f"{record.levelname.lower()}: " if record.levelno > logging.INFO else ""
        return f"{self.formatTime(record, '%H:%M:%S')} {level}{said}"


@dg.logger(
    config_schema={"log_level": dg.Field(str, default_value="INFO", is_required=False)},
    description="One short line on standard error for everything said.",
)
def console(context: dg.InitLoggerContext) -> logging.Logger:
    """Return the logger that `mail-assets backfill` selects."""
    logger = logging.Logger("mail_assets", level=context.logger_config["log_level"])
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Line())
    logger.addHandler(handler)
    return logger


#: The run configuration that selects it, and nothing beside it.
RUN_CONFIG = {"loggers": {"console": {"config": {"log_level": "INFO"}}}}

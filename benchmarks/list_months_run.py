"""One backfill of all lists, whose figures are printed as JSON. See list_months.py."""

import json
from collections import Counter

from sqlalchemy import event
from sqlalchemy.engine import Engine

from mail_assets.defs.backfill.plan import BackfillRequest, backfill_lists
from mail_assets.defs.backfill.report import Event, RangeStarted
from mail_assets.defs.runs import MonthFinished
from mail_assets.settings.settings import load_settings


def main() -> None:
    """Run it, and count."""
    counts = Counter[str]()
    event.listen(Engine, "do_connect", lambda *_: counts.update(["connections"]))
    event.listen(Engine, "before_cursor_execute", lambda *_: counts.update(["statements"]))
    steps = 0.0

    def listen(one: Event) -> None:
        nonlocal steps
        if isinstance(one, MonthFinished) and one.changed:
            steps += one.counts.get("seconds", 0)
        counts["runs"] += isinstance(one, RangeStarted)

    settings = load_settings()
    report = backfill_lists(settings, BackfillRequest([*settings.lists]), listen)
    figures = {**{name: counts[name] for name in ("connections", "statements", "runs")}}
    print(
        json.dumps(
            {
                **figures,
                "steps": steps,
                "months": len(report.done) + len(report.unchanged),
                "failed": [*report.failed],
            }
        )
    )


if __name__ == "__main__":
    main()

"""A day of an operator with real commands: lists are added, fall silent, are closed and removed."""

import datetime as dt
import json
from pathlib import Path

import pytest
from click.testing import Result

from mail_assets.settings.lists import PublishedLists
from mail_assets.settings.settings import load_settings
from mail_assets_tests.cli.conftest import invoke
from mail_assets_tests.databases import dagster_url
from mail_assets_tests.web.conftest import serving
from mail_assets_tests.world import mail


class Day:
    """A home of an operator: its lists.toml, its archives, its commands."""

    def __init__(self, home: Path, dsn: str, models: Path) -> None:
        self.home, self.lists = home, home / "lists.toml"
        self.tables: dict[str, str] = {}
        self.environ = {
            "MAIL_HOME": str(home),
            "MAIL_LISTS": str(self.lists),
            "MAIL_PG_DSN": dsn,
            "MAIL_MODEL_DIR": str(models),
            "MAIL_PRECISION": "static",
            "DAGSTER_POSTGRES_URL": dagster_url(dsn),
            "DAGSTER_HOME": str(home / "dagster"),
        }

    def write(self, *, first_month: str, **tables: str) -> None:
        """Write lists.toml: a list is a folder of its name, and further lines."""
        text = "".join(
            f'[{name}]\nsource = "{self.home / "mail" / name}"\n{more}'
            for name, more in tables.items()
        )
        self.lists.write_text(f'first_month = "{first_month}"\n{text}')

    def archive(self, name: str, month: str, *mails: bytes) -> None:
        folder = self.home / "mail" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.{month}.mbox").write_bytes(b"".join(mails))

    def run(self, *arguments: str, code: int = 0) -> Result:
        result = invoke(*arguments, env=self.environ)
        assert result.exit_code == code, result.output
        return result

    def findings(self) -> list[tuple[str, str]]:
        """Return what doctor finds: the beginning of the problem, and the place."""
        result = invoke("doctor", "--json", env=self.environ)
        assert result.exit_code in (0, 1), result.output
        found = [json.loads(line) for line in result.stdout.splitlines()]
        return [
            (one["problem"].partition(":")[0], one["where"])
            for one in found
            if one["problem"] != "the planner has no statistics"  # autovacuum is off in tests
        ]

    def found(self, query: str) -> int:
        result = self.run("search", "--mode", "fulltext", "--group", "message", "--json", query)
        return len(json.loads(result.stdout)["hits"])


def written(name: str, day: dt.date, text: str) -> bytes:
    return mail(
        name,
        text,
        date=f"{day:%a, %d %b %Y} 09:00:00 +0000",
        from_line=f"From a@example.org {day:%a %b %d} 09:00:00 {day:%Y}",
    )


@pytest.mark.slow
def test_operators_day_ends_in_order(tmp_path: Path, home_dsn: str, model_cache: Path) -> None:
    day = Day(tmp_path, home_dsn, model_cache)
    today = dt.datetime.now(dt.UTC).date()
    month, start = f"{today:%Y-%m}", today - dt.timedelta(40)
    by_month: dict[str, list[bytes]] = {}
    for number in range(41):
        one = start + dt.timedelta(number)
        text = "The quokka was seen again in the harbor."
        by_month.setdefault(f"{one:%Y-%m}", []).append(written(f"h{number}", one, text))
    for name, mails in by_month.items():
        day.archive("harbor", name, *mails)
    day.write(first_month=f"{start:%Y-%m}", harbor="")
    day.run("up")
    day.run("backfill", "--fast")
    assert day.findings() == []

    # a list is added
    day.archive("board", month, written("secret", today, "The quokka budget is a zebrafish."))
    day.write(first_month=f"{start:%Y-%m}", harbor="", board="")
    assert ("no month is stored", "list board") in day.findings()
    day.run("backfill", "--fast", "--list", "board")
    assert day.findings() == []
    assert day.found("zebrafish") == 1

    # it is closed while a server runs
    settings = load_settings(day.environ)
    published = PublishedLists(settings.lists_file, settings.languages)
    with serving(settings, published=published) as client:
        assert client.get("/message/secret@example.org").status_code == 200
        day.write(first_month=f"{start:%Y-%m}", harbor="", board="published = false\n")
        assert client.get("/message/secret@example.org").status_code == 410
        assert client.get("/lists/board").status_code == 410
        assert "zebrafish" not in client.get("/search?q=quokka&mode=fulltext").text
    assert day.found("zebrafish") == 0
    said = day.run("show", "secret@example.org", code=1).output
    assert "is stored in board, not published" in said

    # it is removed
    said = day.run("list", "remove", "board", "--yes", code=1).output
    assert "take its table out first" in said
    day.write(first_month=f"{start:%Y-%m}", harbor="")
    assert day.findings() == [
        ("stored, but no longer in lists.toml", "list board: 1 messages in 1 months"),
        ("the database shows other lists than lists.toml", "table lists: board"),
    ]
    day.run("list", "remove", "board", "--yes")
    assert day.findings() == []
    assert not [*tmp_path.joinpath("store").rglob("*board*")]

    # older mail comes: first_month is lowered, and raised again
    old = start - dt.timedelta(400)
    day.archive("harbor", f"{old:%Y-%m}", written("old", old, "An old wombat."))
    before = day.run("stats", "--json").stdout
    day.write(first_month=f"{old:%Y-%m}", harbor="")
    day.run("backfill", "--fast")
    assert day.found("wombat") == 1
    assert json.loads(before)["lists"]["harbor"]["messages"] == 41
    day.write(first_month=f"{start:%Y-%m}", harbor="")
    found = day.findings()
    assert len(found) == 1, found
    [(problem, where)] = found
    assert problem.startswith("stored, but outside of first_month")
    assert where == f"harbor {old:%Y-%m}"
    day.write(first_month=f"{old:%Y-%m}", harbor="")

    # a list falls silent
    day.archive("quiet", "2020-03", *(
        written(f"q{number}", dt.date(2020, 3, number), "A daily whale.") for number in range(1, 20)
    ))  # fmt: skip
    day.write(first_month="2020-01", harbor="", quiet="")
    day.run("backfill", "--fast", "--list", "quiet")
    found = day.findings()
    assert len(found) == 1, found
    [(problem, where)] = found
    assert problem == "no mail for three times its usual gap"
    assert where.startswith("list quiet: none since 2020-03-19")
    day.write(first_month="2020-01", harbor="", quiet="ended = true\n")
    assert day.findings() == []

"""Alerts: each failed run is posted once with months and reasons, and retried until delivered."""

import io
import logging
from collections.abc import Iterator

import dagster as dg
import pytest

from mail_assets.defs.definitions import build_resources
from mail_assets.defs.failures import RunFailure
from mail_assets.defs.resources import AlertsResource
from mail_assets.defs.sensors import alert_text, build_failure_alerts
from mail_assets.http.requests import WebhookError
from mail_assets.settings.settings import load_settings
from mail_assets.workspace import StepError
from mail_assets_tests.defs.dagster_world import CHAIN, DagsterWorld
from mail_assets_tests.http.receiver import PATH, Receiver, receiving
from mail_assets_tests.world import APRIL, HARBOR, MARCH, MAY, mail


class Tick:
    """Function that ticks the sensor; a failed tick keeps the cursor, as in Dagster."""

    def __init__(self, instance: dg.DagsterInstance, url: str) -> None:
        self.instance, self.alerts = instance, AlertsResource(url=url)
        self.cursor: str | None = None
        self.log = io.StringIO()

    def __call__(self) -> str | None:
        context = dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, resources={"alerts": self.alerts}
        )
        with context:
            context.log.addHandler(logging.StreamHandler(self.log))
            result = build_failure_alerts(enabled=True)(context)
            assert isinstance(result, dg.SkipReason)
            self.cursor = context.cursor
        return result.skip_message


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
def tick(world: DagsterWorld, receiver: Receiver) -> Tick:
    """A sensor that is switched on."""
    made = Tick(world.instance, receiver.url)
    made()
    return made


def fail(world: DagsterWorld, month: str = MARCH) -> str:
    """Run a month with a broken archive; return the id of the run."""
    broken = b"<html>R&D: please log in</html>"
    (world.folder() / f"{HARBOR}.{month}.mbox").write_bytes(broken)
    result = world.month(month, select=CHAIN[:1])
    assert not result.success
    return result.run_id


def test_alert_names_months_and_reasons_of_a_run(
    world: DagsterWorld, receiver: Receiver, tick: Tick
) -> None:
    world.archive(MARCH, mail("a"))
    for month in (APRIL, MAY):
        (world.folder() / f"{HARBOR}.{month}.mbox").write_bytes(b"<html>please log in</html>")
    result = world.range(f"{HARBOR}|{MARCH}", f"{HARBOR}|{MAY}", select=CHAIN[:1])
    assert tick() == "runs posted: 1"
    [text] = receiver.texts
    first, *others = text.splitlines()
    assert first == f"*some* failed, run {result.run_id[:8]}:"
    assert [line.partition(": ")[0] for line in others] == [
        f"• {HARBOR} {APRIL}",
        f"• {HARBOR} {MAY}",
    ]
    assert all(len(line.partition(": ")[2]) > 20 for line in others)
    assert "<" not in text
    assert tick() == "no failed runs"
    assert receiver.texts == [text]


def test_alert_links_to_the_run_if_ui_url_is_set(
    world: DagsterWorld, receiver: Receiver, tick: Tick
) -> None:
    tick.alerts = AlertsResource(url=receiver.url, ui_url="http://127.0.0.1:3000")
    run = fail(world)
    tick()
    assert f" failed, <http://127.0.0.1:3000/runs/{run}|run {run[:8]}>:\n" in receiver.texts[0]


def test_failed_blocking_check_names_its_months_and_figures(
    world: DagsterWorld, receiver: Receiver, tick: Tick
) -> None:
    world.archive(MARCH, mail("a"))
    world.spoil_chunks()
    assert not world.month(MARCH, select=CHAIN[:5]).success
    tick()
    [text] = receiver.texts
    [line] = text.splitlines()[1:]
    assert line.startswith(f"• {HARBOR} {MARCH}: check spans_point_into_bodies failed: ")
    assert "wrong 1" in line


@dg.asset
def stock() -> None:
    """An asset with checks."""


def checked(severity: dg.AssetCheckSeverity) -> dg.AssetChecksDefinition:
    @dg.asset_check(asset=stock)
    def enough() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=False, severity=severity, description="3 < 4")

    return enough


def test_failed_check_of_a_successful_run_is_posted(receiver: Receiver, tick: Tick) -> None:
    check = checked(dg.AssetCheckSeverity.ERROR)
    assert dg.materialize([stock, check], instance=tick.instance).success
    assert tick() == "runs posted: 1"
    assert receiver.texts[0].endswith("\n• stock: check enough: 3 &lt; 4")


def test_alerts_post_no_warning_and_no_success(receiver: Receiver, tick: Tick) -> None:
    check = checked(dg.AssetCheckSeverity.WARN)
    assert dg.materialize([stock, check], instance=tick.instance).success
    assert tick() == "no failed runs"
    assert receiver.texts == []


@pytest.mark.parametrize(
    ("caught", "reason"),
    [(False, "ZeroDivisionError: division by zero"), (True, "harbor 2024-03: no messages")],
)
def test_alert_has_the_step_and_our_error_not_its_cause(
    receiver: Receiver, tick: Tick, caught: bool, reason: str
) -> None:
    @dg.op
    def divide() -> float:
        try:
            return 1 / 0
        except ZeroDivisionError as error:
            if not caught:
                raise
            raise StepError("harbor 2024-03: no messages") from error

    @dg.job
    def arithmetic() -> None:
        divide()

    arithmetic.execute_in_process(instance=tick.instance, raise_on_error=False)
    tick()
    first, second = receiver.texts[0].splitlines()
    assert first.startswith("*arithmetic* failed, run ")
    assert second.startswith("• divide: ")
    assert second.endswith(reason)


def test_run_that_fails_without_a_failed_step_is_posted(receiver: Receiver, tick: Tick) -> None:
    run = tick.instance.add_run(dg.DagsterRun(job_name="any", status=dg.DagsterRunStatus.STARTED))
    tick.instance.report_run_failed(run, "Exceeded maximum runtime of 9 seconds.")
    tick()
    assert receiver.texts == [
        f"*any* failed, run {run.run_id[:8]}:\n• run: Exceeded maximum runtime of 9 seconds."
    ]


def test_alerts_post_no_failure_before_they_are_on(world: DagsterWorld, receiver: Receiver) -> None:
    fail(world)
    tick = Tick(world.instance, receiver.url)
    tick()
    assert tick() == "no failed runs"
    fail(world, APRIL)
    assert tick() == "runs posted: 1"


def test_refused_alert_is_posted_by_a_later_tick(
    world: DagsterWorld, receiver: Receiver, tick: Tick
) -> None:
    for month in (MARCH, APRIL):
        fail(world, month)
    receiver.refusals.append((503, "try later"))
    with pytest.raises(WebhookError, match=r"^HTTP 503: try later$"):
        tick()
    assert "MAIL_ALERT_URL: HTTP 503: try later; run " in tick.log.getvalue()
    assert tick() == "runs posted: 2"
    assert [MARCH in text for text in receiver.texts] == [True, False]


def test_alert_is_not_posted_twice_if_the_next_fails(
    world: DagsterWorld, receiver: Receiver, tick: Tick, monkeypatch: pytest.MonkeyPatch
) -> None:
    for month in (MARCH, APRIL):
        fail(world, month)
    post = AlertsResource.post

    def post_once(alerts: AlertsResource, text: str) -> None:
        post(alerts, text)
        receiver.refusals.append((500, ""))

    monkeypatch.setattr(AlertsResource, "post", post_once)
    assert tick() == "runs posted: 1"
    monkeypatch.undo()
    receiver.refusals.clear()
    assert tick() == "runs posted: 1"
    assert [MARCH in text for text in receiver.texts] == [True, False]


def test_alerts_post_nothing_without_a_webhook(world: DagsterWorld, receiver: Receiver) -> None:
    tick = Tick(world.instance, "")
    fail(world)
    assert tick() == "MAIL_ALERT_URL is not set"
    assert build_failure_alerts(enabled=False).default_status == dg.DefaultSensorStatus.STOPPED
    assert build_failure_alerts(enabled=True).default_status == dg.DefaultSensorStatus.RUNNING


def test_alert_url_is_a_secret(
    world: DagsterWorld, receiver: Receiver, tick: Tick, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    fail(world)
    receiver.refusals.append((404, "no_service"))
    with pytest.raises(WebhookError) as error:
        tick()
    tick()
    assert PATH not in f"{error.value}{tick.log.getvalue()}{caplog.text}{receiver.texts}"
    settings = load_settings({"MAIL_ALERT_URL": receiver.url})
    assert PATH not in repr(settings)
    assert PATH not in repr(build_resources(settings))


def test_long_alert_is_cut() -> None:
    failures = [RunFailure(f"harbor 2024-{n:02d}", "x" * 1000) for n in range(1, 13)]
    text = alert_text("refresh_archives", "run 1", failures)
    assert len(text) < 4000
    assert text.endswith("...\nand 2 more")


@pytest.mark.parametrize("job", ["__ASSET_JOB", "__ASSET_JOB_0"])
def test_alert_calls_an_unnamed_job_materialization(job: str) -> None:
    assert alert_text(job, "run 1", []) == "*materialization* failed, run 1:"

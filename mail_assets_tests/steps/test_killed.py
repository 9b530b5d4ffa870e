"""After a kill at any point, the next run gives the same result."""

import psycopg
import pytest

from mail_assets.steps import encode_chunks as embeddings
from mail_assets_tests.forks import start_process
from mail_assets_tests.kept_worlds import kept_world
from mail_assets_tests.steps.killed_run import POINTS, run_and_die
from mail_assets_tests.world import APRIL, MARCH, World, mail

OLD = [mail(f"m{n}") for n in range(8)]
NEW = [*OLD[1:6], mail("m6", "Edited."), *(mail(f"n{n}") for n in range(5)), mail("m7")]


def old(world: World) -> None:
    """Bring a world to the state before the killed run."""
    world.archive(MARCH, *OLD)
    world.archive(APRIL, *OLD[:2])
    world.chain(MARCH)
    world.chain(APRIL)
    world.archive(MARCH, *NEW, at=1)


world = kept_world(old)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, cluster: object) -> dict[str, object]:
    """The content of both months after runs without a kill."""
    dsn = cluster.dsn("postgres")  # type: ignore[attr-defined]
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create database undisturbed")
    world = World(tmp_path_factory.mktemp("undisturbed"), dsn.replace("postgres?", "undisturbed?"))
    world.archive(MARCH, *NEW, at=1)
    world.archive(APRIL, *OLD[:2])
    world.chain(MARCH)
    world.chain(APRIL)
    return world.holds()


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_run_after_a_kill_gives_the_same_result(
    world: World, undisturbed: dict[str, object], point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = start_process(run_and_die, point, world.home, world.dsn)
    killed.join()
    assert killed.exitcode == -9
    monkeypatch.setattr(embeddings, "PART", 2)
    world.chain()
    world.chain()  # the first run kept the old archive while messages needed it
    after = world.holds()
    for name, expected in undisturbed.items():
        assert after[name] == expected, name
    before = world.writes()
    world.chain()
    assert world.writes() == before

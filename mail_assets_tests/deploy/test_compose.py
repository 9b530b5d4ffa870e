"""compose.yaml is valid, and each part has the command, variables and files that it needs."""

import itertools
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.deployment import Service, read_services
from mail_assets.settings.settings import load_dagster_settings, load_settings
from mail_assets.settings.variables import SHARED
from mail_assets_tests.conftest import REPOSITORY

BIN = Path(sys.executable).parent
COMPOSE = REPOSITORY / "compose.yaml"
SERVICES = read_services(COMPOSE, {})
PARTS = [service for service in SERVICES.values() if service.is_ours]


def part_name(part: Service) -> str:
    return part.name


def in_repository(path: str) -> Path:
    """Return the file of the repository that the image has at a path."""
    assert path.startswith("/opt/deploy/")
    return REPOSITORY / "deploy" / path.removeprefix("/opt/deploy/")


def variables_of(value: Any) -> set[str]:
    """Return the X of each {env: X} in a YAML value."""
    if isinstance(value, dict):
        if [*value] == ["env"]:
            return {value["env"]}
        return {name for one in value.values() for name in variables_of(one)}
    return (
        {name for one in value for name in variables_of(one)} if isinstance(value, list) else set()
    )


def test_compose_file_follows_its_specification() -> None:
    checker = BIN / "check-jsonschema"
    command = [str(checker), "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_compose_has_the_parts_of_a_deployment() -> None:
    assert {part.name for part in PARTS} == {"code", "webserver", "daemon", "worker", "serve"}
    assert SERVICES.keys() - {part.name for part in PARTS} == {"postgres", "redis", "proxy"}


def test_secrets_are_files_that_the_parts_read(tmp_path: Path) -> None:
    document = yaml.safe_load(COMPOSE.read_text())
    assert "PASSWORD:?" not in COMPOSE.read_text()
    declared = document["secrets"]
    used = {name for one in document["services"].values() for name in one.get("secrets", ())}
    assert used == declared.keys()
    for name, one in declared.items():
        assert one["file"] == f"${{MAIL_SECRETS_FOLDER:-./secrets}}/{name}"
        (tmp_path / name).write_text(f"{'2a' * 32}\n")
    program = (
        "from mail_assets.settings.settings import load_settings; import os;"
        "print(os.environ.get('PGPASSWORD'), load_settings().given_forget_key,"
        " os.environ['PGPASSWORD'])"
    )
    lists = tmp_path / "lists.toml"
    lists.write_text('[dev]\nsource = "s3://bucket/dev"\n')
    environ = {**SERVICES["code"].environment, "MAIL_SECRETS": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**environ, "MAIL_LISTS": str(lists), "PATH": "/usr/bin"},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["None", "2a" * 32, "2a" * 32]


@pytest.mark.parametrize("part", PARTS, ids=part_name)
def test_part_sees_no_file_of_the_checkout_but_its_lists(part: Service) -> None:
    mounted = {one.split(":")[1]: one.split(":")[0] for one in part.volumes}
    assert mounted["/lists/lists.toml"] == "./lists.toml"
    assert {source for source in mounted.values() if source.startswith(".")} == {
        "./lists.toml",
        "./samples",
    }


def test_readers_reach_the_server_by_its_proxy() -> None:
    document = yaml.safe_load(COMPOSE.read_text())["services"]
    assert "ports" not in document["serve"]
    [port] = document["proxy"]["ports"]
    assert port.startswith("127.0.0.1:")
    text = (REPOSITORY / "deploy" / "celery" / "nginx.conf").read_text()
    assert f"listen {port.rpartition(':')[2]};" in text
    assert "server serve:8000;" in text
    assert all(word in text for word in ("gzip on;", "limit_conn clients", "limit_req zone="))
    assert "MAIL_WEB_PROXIES" in SERVICES["serve"].environment


@pytest.mark.skipif(shutil.which("nginx") is None, reason="no nginx here")
def test_nginx_accepts_the_configuration(tmp_path: Path) -> None:
    text = (REPOSITORY / "deploy" / "celery" / "nginx.conf").read_text()
    config = tmp_path / "nginx.conf"
    config.write_text(text.replace("server serve:8000;", "server 127.0.0.1:8000;"))
    checked = subprocess.run(["nginx", "-t", "-c", config], capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("part", PARTS, ids=part_name)
def test_part_has_every_variable_of_its_dagster_yaml(part: Service) -> None:
    home = in_repository(part.environment["DAGSTER_HOME"])
    named = variables_of(yaml.safe_load((home / "dagster.yaml").read_text()))
    assert "CELERY_BROKER_URL" in named
    assert named <= part.environment.keys()


@pytest.mark.parametrize("part", PARTS, ids=part_name)
def test_part_refuses_local_state_and_has_its_settings(part: Service, tmp_path: Path) -> None:
    assert part.environment["MAIL_LOCAL_STATE"] == "refuse"
    assert {row.name for row in SHARED} <= part.environment.keys()
    lists = tmp_path / "lists.toml"
    lists.write_text('[dev]\nsource = "s3://bucket/dev"\n')
    settings = load_settings({**part.environment, "MAIL_LISTS": str(lists)})
    assert settings.jobs == 1
    assert load_dagster_settings(part.environment).postgres_url == settings.dagster_url


@pytest.mark.parametrize("part", PARTS, ids=part_name)
def test_volumes_of_a_part_hold_all_folders_that_it_writes(part: Service) -> None:
    targets = {volume.split(":")[1] for volume in part.volumes}
    for name in ("MAIL_STORE", "MAIL_VECTORS", "MAIL_WORDS"):
        folder = part.environment[name].removeprefix("lance:")
        assert any(folder.startswith(f"{target}/") for target in targets)
    assert "/models" in targets, "workers of a machine take turns by this folder"


@pytest.mark.slow
@pytest.mark.parametrize("command", [
    *(pytest.param([*part.command], id=part.name) for part in PARTS),
    *(pytest.param([*part.healthcheck[1:]], id=f"{part.name}-health") for part in PARTS),
])  # fmt: skip
def test_command_exists_with_its_options(command: list[str]) -> None:
    words = shlex.split(command[0]) if len(command) == 1 else command
    if words[0] == "python3":
        compile(words[2], "healthcheck", "exec")
        return
    # celery is told where its tasks are before it is told what to do
    app = words[1:3] if words[1] == "--app" else []
    rest = words[1 + len(app) :]
    verbs = itertools.takewhile(lambda word: not word.startswith("-"), rest)
    asked = subprocess.run(
        [BIN / words[0], *app, *verbs, "--help"], capture_output=True, text=True, check=True
    )
    assert {word for word in rest if word.startswith("--")} <= {
        *re.findall(r"--[a-z][a-z-]+", asked.stdout)
    }


def test_workspace_names_the_code_server() -> None:
    path = SERVICES["daemon"].command[SERVICES["daemon"].command.index("--workspace") + 1]
    [location] = yaml.safe_load(in_repository(path).read_text())["load_from"]
    command = SERVICES["code"].command
    assert location["grpc_server"]["host"] == "code"
    assert str(location["grpc_server"]["port"]) == command[command.index("--port") + 1]


def test_files_of_the_repository_that_are_mounted_exist() -> None:
    sources = [volume.split(":")[0] for one in SERVICES.values() for volume in one.volumes]
    assert all((REPOSITORY / source).exists() for source in sources if source.startswith("."))


def test_runs_at_once_are_as_many_as_workers() -> None:
    services = read_services(COMPOSE, {"MAIL_WORKERS": "5"})
    assert services["worker"].replicas == 5
    assert services["daemon"].environment["MAIL_WORKERS"] == "5"


def test_worker_takes_one_run_at_a_time() -> None:
    command = " ".join(SERVICES["worker"].command)
    assert "--concurrency 1 --prefetch-multiplier 1 --disable-prefetch" in command

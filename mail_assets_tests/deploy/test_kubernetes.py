"""deploy/kubernetes/values.yaml: the Job of a run is valid and complete."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes.client
import kubernetes_validate
import pytest
import yaml
from dagster_k8s.container_context import K8sContainerContext
from dagster_k8s.job import DagsterK8sJobConfig, construct_dagster_k8s_job

from mail_assets.settings.settings import load_dagster_settings, load_settings
from mail_assets.settings.variables import SHARED
from mail_assets_tests.conftest import REPOSITORY
from mail_assets_tests.databases import dagster_url
from mail_assets_tests.world import World, mail

FOLDER = REPOSITORY / "deploy" / "kubernetes"
VALUES = yaml.safe_load((FOLDER / "values.yaml").read_text())
[CODE] = VALUES["dagster-user-deployments"]["deployments"]
RUNS = VALUES["runLauncher"]["config"]["k8sRunLauncher"]


@pytest.fixture(scope="module")
def job() -> dict[str, Any]:
    """The Job of a run, as the chart's launcher makes it of the values."""
    image = CODE["image"]
    context = K8sContainerContext.create_from_config(
        {
            "k8s": {
                "env": [{"name": name, "value": value} for name, value in CODE["env"].items()],
                "env_secrets": [one["name"] for one in CODE["envSecrets"]],
                "volumes": CODE["volumes"],
                "volume_mounts": CODE["volumeMounts"],
                "run_k8s_config": {
                    re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name): value
                    for name, value in RUNS["runK8sConfig"].items()
                },
            }
        }
    )
    made = construct_dagster_k8s_job(
        DagsterK8sJobConfig(
            job_image=f"{image['repository']}:{image['tag']}",
            dagster_home=VALUES["global"]["dagsterHome"],
            instance_config_map="dagster-instance",
            postgres_password_secret=VALUES["global"]["postgresqlSecretName"],
        ),
        args=["dagster", "api", "execute_run", "{}"],
        job_name="dagster-run-00000000",
        user_defined_k8s_config=context.run_k8s_config,
        component="run_worker",
    )
    document = kubernetes.client.ApiClient().sanitize_for_serialization(made)
    loaded: dict[str, Any] = json.loads(json.dumps(document))
    return loaded


@pytest.fixture(scope="module")
def container(job: dict[str, Any]) -> dict[str, Any]:
    [found] = job["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def test_kubernetes_accepts_the_job(job: dict[str, Any]) -> None:
    kubernetes_validate.validate(job, "1.34", strict=True)


def test_run_is_not_root_and_has_limits(job: dict[str, Any], container: dict[str, Any]) -> None:
    pod = job["spec"]["template"]["spec"]
    dockerfile = (REPOSITORY / "Dockerfile").read_text()
    assert pod["securityContext"]["runAsNonRoot"]
    assert f"USER {pod['securityContext']['runAsUser']}:" in dockerfile
    assert container["resources"]["requests"]["cpu"] == CODE["env"]["MAIL_JOBS"]


def test_run_has_every_required_variable(container: dict[str, Any]) -> None:
    environ = {one["name"]: one.get("value", "from a secret") for one in container["env"]}
    assert {row.name for row in SHARED} <= environ.keys()
    assert environ["MAIL_LOCAL_STATE"] == "refuse"
    assert environ["DAGSTER_HOME"] == VALUES["global"]["dagsterHome"]
    settings = load_settings({**environ, "MAIL_LISTS": str(REPOSITORY / "lists.toml")})
    assert settings.store.startswith("s3://")
    assert load_dagster_settings(environ).postgres_url == settings.dagster_url
    secrets = [one["secretRef"]["name"] for one in container["envFrom"]]
    assert secrets == ["mail-assets"]


def test_lists_file_is_mounted_at_its_setting(container: dict[str, Any]) -> None:
    mounts = [one["mountPath"] for one in container["volumeMounts"]]
    assert CODE["env"]["MAIL_LISTS"].rpartition("/")[0] in mounts


SERVE = [*yaml.safe_load_all((FOLDER / "serve.yaml").read_text())]


@pytest.mark.parametrize("document", SERVE, ids=lambda one: str(one["kind"]))
def test_kubernetes_accepts_serve(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, "1.34", strict=True)


def test_serve_has_probes_settings_and_no_root() -> None:
    deployment, service = SERVE
    assert (deployment["kind"], service["kind"]) == ("Deployment", "Service")
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    for probe, path in (("startup", "/ready"), ("readiness", "/ready"), ("liveness", "/health")):
        assert container[f"{probe}Probe"]["httpGet"]["path"] == path
    environ = {one["name"]: one["value"] for one in container["env"]}
    assert {row.name for row in SHARED} <= environ.keys()
    code = {name: value for name, value in CODE["env"].items() if name in environ}
    assert {name: environ[name] for name in code} == code, "it reads what runs write"
    settings = load_settings({**environ, "MAIL_LISTS": str(REPOSITORY / "lists.toml")})
    assert settings.web_proxies
    assert pod["securityContext"]["runAsUser"] == 10001
    [mount] = container["volumeMounts"]
    assert "subPath" not in mount, "a file by its path is not updated"


def test_code_server_reads_its_lists_again_at_reload() -> None:
    assert CODE["codeServerArgs"] == ["--module-name", "mail_assets.definitions"]
    assert "dagsterApiGrpcArgs" not in CODE
    compose = yaml.safe_load((REPOSITORY / "compose.yaml").read_text())
    assert compose["services"]["code"]["command"][:3] == ["dagster", "code-server", "start"]


def test_user_of_the_image_may_write_the_dagster_home() -> None:
    dockerfile = (REPOSITORY / "Dockerfile").read_text()
    home = VALUES["global"]["dagsterHome"]
    assert f"mkdir -p {home}" in dockerfile
    assert re.search(rf"chown 10001:10001 [^\n]*{home}", dockerfile)


@pytest.mark.slow
def test_documented_fill_command_runs_in_a_pod(world: World, home_dsn: str, tmp_path: Path) -> None:
    """As in the pod: a ConfigMap, whose files are links to links, and an empty Dagster home."""
    world.archive("2024-03", mail("a"))
    home, dagster, lists = (tmp_path / name for name in ("data", "dagster_home", "pod"))
    for folder in (home, dagster, lists / "..1"):
        folder.mkdir(parents=True)
    text = f'first_month = "2024-01"\n[harbor]\nsource = "{world.folder()}"\n'
    (lists / "..1" / "lists.toml").write_text(text)
    (lists / "..data").symlink_to("..1")
    (lists / "lists.toml").symlink_to("..data/lists.toml")
    environ = {
        **{name: value for name, value in CODE["env"].items() if name.startswith("MAIL_")},
        "MAIL_PG_DSN": home_dsn,
        "DAGSTER_POSTGRES_URL": dagster_url(home_dsn),
        "DAGSTER_HOME": str(dagster),
        "MAIL_HOME": str(home),
        "MAIL_LISTS": str(lists / "lists.toml"),
        "MAIL_STORE": str(home / "store"),
        "MAIL_VECTORS": f"lance:{home / 'vectors'}",
        "MAIL_WORDS": f"lance:{home / 'words'}",
        "HOME": str(home),
        "PATH": os.environ["PATH"],
    }
    documented = "-- mail-assets backfill --launch"
    assert documented in (REPOSITORY / "docs" / "deployment.md").read_text()
    command = [sys.executable, "-m", "mail_assets.cli", "backfill", "--launch"]
    run = subprocess.run(
        command, env=environ, cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    # the command reports that no daemon runs
    assert run.returncode == 0 or "daemon" in run.stderr, run.stderr
    assert (dagster / "dagster.yaml").is_file()


def test_parts_use_one_database_for_dagster() -> None:
    server = VALUES["postgresql"]
    assert load_dagster_settings(CODE["env"]).postgres_url == (
        f"{server['postgresqlScheme']}://{server['postgresqlUsername']}@"
        f"{server['postgresqlHost']}/{server['postgresqlDatabase']}"
    )

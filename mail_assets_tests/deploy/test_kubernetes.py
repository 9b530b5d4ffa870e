"""deploy/kubernetes/values.yaml: the Job of a run is valid and complete."""

import json
import re
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

VALUES = yaml.safe_load((REPOSITORY / "deploy" / "kubernetes" / "values.yaml").read_text())
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
    """The container in which a run runs."""
    [found] = job["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def test_kubernetes_accepts_the_job(job: dict[str, Any]) -> None:
    kubernetes_validate.validate(job, "1.34", strict=True)


def test_run_is_not_root_and_has_resource_limits(
    job: dict[str, Any], container: dict[str, Any]
) -> None:
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


def test_parts_use_one_database_for_dagster() -> None:
    server = VALUES["postgresql"]
    assert load_dagster_settings(CODE["env"]).postgres_url == (
        f"{server['postgresqlScheme']}://{server['postgresqlUsername']}@"
        f"{server['postgresqlHost']}/{server['postgresqlDatabase']}"
    )

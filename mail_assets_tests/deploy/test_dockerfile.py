"""The Dockerfile follows hadolint, has a numeric user and installs locked versions."""

import re
import subprocess
import sys
from pathlib import Path

from mail_assets_tests.conftest import REPOSITORY

DOCKERFILE = REPOSITORY / "Dockerfile"
TEXT = DOCKERFILE.read_text(encoding="utf-8")


def test_dockerfile_follows_hadolint() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    checked = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_container_user_is_a_number_and_not_root() -> None:
    assert re.findall(r"^USER (.*)$", TEXT, re.MULTILINE) == ["10001:10001"]


def test_stages_share_one_replaceable_base_image() -> None:
    assert re.findall(r"^FROM (\S+)", TEXT, re.MULTILINE) == ["${BASE}", "${BASE}"]


def test_every_installation_is_of_locked_versions() -> None:
    installed = re.findall(r"pip install ([^\n\\]+)", TEXT)
    assert installed == ["--no-deps --requirement requirements-deploy.lock", "--no-deps ."]


def test_copied_files_are_sent_to_the_build() -> None:
    sent = {
        line[1:]
        for line in (REPOSITORY / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    copied = [
        name
        for names in re.findall(r"^COPY (?:--chown=\S+ )?((?!--from)\S.*) \S+$", TEXT, re.MULTILINE)
        for name in names.split()
    ]
    assert copied
    for name in copied:
        assert any(Path(name).match(pattern) for pattern in sent), name
        assert (REPOSITORY / name).exists(), name

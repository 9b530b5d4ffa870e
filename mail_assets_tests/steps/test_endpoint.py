"""If a server dies while it encodes a month, its answers are kept and not requested again."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mail_assets.encoding.models import RemoteModel
from mail_assets.encoding.open import open_tokenizer
from mail_assets.encoding.remote_encoder import RemoteEncoder
from mail_assets.month import ListMonth
from mail_assets.openai import Client, EndpointError, Server
from mail_assets.steps import encode_chunks as step
from mail_assets.store.embeddings import file_key, read_embeddings
from mail_assets_tests.conftest import REPOSITORY
from mail_assets_tests.encoding.fake_openai import DIMENSION, MODEL
from mail_assets_tests.openai.fake_server import KEY
from mail_assets_tests.ports import find_free_port
from mail_assets_tests.waits import LONG
from mail_assets_tests.world import HARBOR, MARCH, World, mail

MAILS = 22
PART, BATCH = 6, 2  # three requests make a part


class Process:
    """A server in its own process, on the same port after each start."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.port = find_free_port()
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.running: subprocess.Popen[bytes] | None = None

    def start(self, requests: int) -> None:
        """Serve `count` requests, then die by SIGKILL instead of the next answer."""
        module = "mail_assets_tests.encoding.fake_openai"
        command = [sys.executable, "-m", module, str(self.port), str(self.log), str(requests)]
        self.running = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE)
        assert self.running.stdout
        assert self.running.stdout.readline().decode().strip() == self.url

    def ended(self) -> int:
        assert self.running
        assert self.running.stdout
        self.running.stdout.close()
        return self.running.wait(LONG)

    def asked(self) -> list[str]:
        if not self.log.exists():
            return []
        return [text for line in self.log.read_text().splitlines() for text in json.loads(line)]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path / "asked")
    yield process
    if process.running and process.running.poll() is None:
        process.running.kill()
        process.ended()


@pytest.fixture
def loaded(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(step, "PART", PART)
    world.archive(MARCH, *(mail(f"m{n}") for n in range(MAILS)))
    world.chain(last="chunks")
    return world


def endpoint(server: Process, pause: Callable[..., object]) -> RemoteEncoder:
    model = RemoteModel(MODEL, server.url, DIMENSION)
    client = Client(Server("MAIL_ENCODER", server.url, KEY), pause)
    encoder = RemoteEncoder(model, open_tokenizer(model.name), client)
    encoder.batch, encoder.in_flight = BATCH, 1
    return encoder


def test_killed_server_costs_only_the_part_in_flight(loaded: World, server: Process) -> None:
    # two parts are kept; of the third, one request of three has been answered
    server.start(requests=7)
    encoder = endpoint(server, lambda stopped, seconds: None)
    loaded.encoder = encoder  # type: ignore[assignment]
    with pytest.raises(EndpointError, match=r"ConnectError: .* times in .*; run again later"):
        loaded.embeddings()
    assert server.ended() == -9
    before = server.asked()
    assert len(before) == len({*before}) == 7 * BATCH

    server.start(requests=100)
    outcome = loaded.embeddings()
    assert (outcome.counts["encoded"], outcome.counts["reused"]) == (MAILS - 2 * PART, 2 * PART)
    asked = Counter(server.asked())
    assert len(asked) == MAILS
    assert {text for text, times in asked.items() if times > 1} == {*before[2 * PART :]}
    assert max(asked.values()) == 2
    vectors = read_embeddings(loaded.store, file_key(ListMonth(HARBOR, MARCH), encoder.fingerprint))
    assert len(vectors) == MAILS
    encoder.close()


def test_server_that_comes_back_in_time_costs_nothing(loaded: World, server: Process) -> None:
    server.start(requests=4)
    pauses: list[float] = []

    def restarted(stopped: object, seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            assert server.ended() == -9
            server.start(requests=100)

    encoder = endpoint(server, restarted)
    loaded.encoder = encoder  # type: ignore[assignment]
    outcome = loaded.embeddings()
    assert outcome.counts["encoded"] == MAILS
    assert len(pauses) == 3
    asked = server.asked()
    assert len(asked) == len({*asked}) == MAILS
    encoder.close()

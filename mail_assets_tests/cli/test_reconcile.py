"""`mail-assets reconcile` with an encoder on a server; the rest is with `index`."""

from pathlib import Path

from mail_assets.encoding.open import _open_remote
from mail_assets_tests.cli.conftest import Home
from mail_assets_tests.encoding.fake_openai import MODEL, fake_openai
from mail_assets_tests.openai.fake_server import KEY, serving


def test_the_index_of_an_encoder_on_a_server_is_compared_though_the_server_is_away(
    tmp_path: Path, mail_dsn: str, model_cache: Path
) -> None:
    home = Home(tmp_path, mail_dsn, model_cache)
    with serving(fake_openai()) as server:
        home.environ |= {
            "MAIL_ENCODER": f"openai:{MODEL}",
            "MAIL_ENCODER_URL": server.url,
            "MAIL_ENCODER_KEY": KEY,
        }
        home.lines("backfill")
    _open_remote.cache_clear()  # it knows the dimension
    clean, words = home.lines("reconcile")
    assert words.startswith("words-")
    assert words.endswith(", clean")
    assert clean.startswith(f"mail2-{MODEL}-")
    assert clean.endswith(", clean")

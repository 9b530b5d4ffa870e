"""Names of lists: checked, suggested, completed."""

from click.testing import CliRunner

from mail_assets.cli import main


def test_an_unknown_list_suggests_the_nearest(bare: dict[str, str]) -> None:
    result = CliRunner().invoke(main, ["backfill", "--list", "quite"], env=bare)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "mail-assets: --list='quite': did you mean quiet? there are: quiet\n"

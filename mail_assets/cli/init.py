"""init, completion: write a first lists.toml; let a shell complete commands and names of lists."""

import click
from click.shell_completion import get_completion_class

from mail_assets.cli.command import check_month, examples, report_errors
from mail_assets.encoding.models import ALL_MINILM_L6_V2, advise_language
from mail_assets.environment import VARIABLES
from mail_assets.settings.lists import check_name, write_lists_file
from mail_assets.settings.settings import read_lists_path
from mail_assets.settings.values import SettingsError, absolute_path

NEXT = """\
Next:
  mail-assets up                  start the database, look for the model
  mail-assets backfill            fetch the archives and make them searchable
  mail-assets search "a question"
"""


@click.command(
    epilog=examples(
        "mail-assets init --name my-list --source https://lists.example.org/pipermail/my-list/"
    )
)
@click.option("--name", metavar="LIST", help="The list's name, which is permanent.")
@click.option(
    "--source",
    metavar="PLACE",
    help="Its archives: a folder, a file, a URL, or KIND:PLACE (docs/sources.md).",
)
@click.option("--dialect", metavar="NAME", help="How the mbox files quote; default: found out.")
@click.option("--language", metavar="NAME", help="The language of its mail; default: english.")
@click.option("--start", metavar="YYYY-MM", help="Its first month; default: 1995-01.")
@report_errors
def init(name: str | None, source: str | None, **more: str | None) -> None:
    """Write a first lists.toml.

    It has one mailing list, or an example to edit. MAIL_LISTS names the file; the default is that
    of the checkout, or mail-assets/lists.toml in the folder for configuration (~/.config). A file
    that exists is not changed.
    """
    if bool(name) != bool(source) or (any(more.values()) and not name):
        raise click.UsageError("--name and --source are needed, or no option at all")
    check_month("--start", more["start"])
    path = read_lists_path(VARIABLES)
    tables = {}
    if name and source:
        check_name("--name", name)
        given = {key: value for key, value in more.items() if value}
        tables[name] = {"source": _absolute_source(source), **given}
    write_lists_file(path, tables)
    click.echo(f"wrote {path}")
    if not name:
        click.echo("Uncomment its example and edit it for your list.")
    click.echo(NEXT, nl=False)
    encoder = VARIABLES.get("MAIL_ENCODER", "").strip() or ALL_MINILM_L6_V2.name
    if more["language"] and (advice := advise_language(encoder, [more["language"]])):
        click.echo(advice)


def _absolute_source(source: str) -> str:
    """Return a URL, or an absolute path: a relative one would begin at lists.toml."""
    from mail_assets.sources.urls import split_kind

    kind, place = split_kind(source)
    if "://" in place:
        return source
    path = absolute_path("--source", place)
    if not path.exists():
        raise SettingsError("--source", source, "no such folder or file")
    return f"{kind}:{path}" if kind else str(path)


PROGRAM = "mail-assets"


@click.command(
    epilog=examples(
        'eval "$(mail-assets completion bash)"   # in ~/.bashrc; zsh alike',
        "mail-assets completion fish > ~/.config/fish/completions/mail-assets.fish",
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    With it the shell completes commands, options and the names of lists.
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click knows each of the choices"
    variable = f"_{PROGRAM.upper().replace('-', '_')}_COMPLETE"
    click.echo(kind(context.find_root().command, {}, PROGRAM, variable).source())

"""completion: the script that lets a shell complete commands, options and names of lists."""

import click
from click.shell_completion import get_completion_class

from mail_assets.cli.command import examples

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

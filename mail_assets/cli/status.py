"""status: the settings, and the state of the database."""

import click

from mail_assets.cli.command import examples, pass_settings
from mail_assets.cli.options import json_option
from mail_assets.cli.output import print_json, print_table
from mail_assets.settings.environment import Settings


@click.command(epilog=examples("mail-assets status"))
@json_option
@pass_settings
def status(settings: Settings, as_json: bool) -> None:
    """Show the settings and the state of the database.

    Nothing is started or made.
    """
    facts = read_status(settings)
    if as_json:
        print_json(facts)
    else:
        print_table((), list(facts.items()))


def read_status(settings: Settings) -> dict[str, str]:
    """Return the configured values, and the state of the database."""
    from mail_assets.cli.server import describe_state
    from mail_assets.encoding.open import compute_fingerprint
    from mail_assets.steps.vector_index import index_name

    return {
        "home": str(settings.home),
        "lists": f"{settings.lists_file}: {', '.join(settings.lists)}",
        "postgres": describe_state(settings),
        "store": settings.store,
        "vectors": settings.vectors,
        "words": settings.words,
        "encoder": f"{settings.encoder} {settings.precision}",
        "fingerprint": compute_fingerprint(settings.encoder, settings.precision),
        "index": index_name(settings.encoder, settings.precision),
    }

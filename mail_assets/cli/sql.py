"""sql: search as functions of the mail database, for clients that speak SQL or RPC."""

import click

from mail_assets.cli.command import HelpfulGroup, examples, pass_settings, print_error, refuse_empty
from mail_assets.settings.settings import Settings


@click.group(cls=HelpfulGroup, epilog=examples("mail-assets sql install"))
def sql() -> None:
    """Search as functions of the mail database.

    docs/sql.md describes them.
    """


@sql.command(
    epilog=examples("mail-assets sql install", "mail-assets sql install --public web_anon")
)
@click.option(
    "--public",
    metavar="ROLE",
    callback=refuse_empty,
    help="Let this role read mail_public: no addresses.",
)
@pass_settings
def install(settings: Settings, public: str | None) -> None:
    """Install the SQL functions of search.

    They are search_semantic, search_fulltext, search_hybrid and search_messages_with_chunks.
    Install them again after each change of lists.toml and each new version. Without --public only
    the owner can call them, also if they were public before.
    """
    from mail_assets.postgres.programs import vector_cpu_ok
    from mail_assets.sql_functions.install import install_functions

    languages = settings.languages
    # The pgvector of the embedded server does not run on every processor.
    vectors = bool(settings.pg_dsn) or vector_cpu_ok()
    with settings.database.connect("sql") as connection:
        able = install_functions(connection, languages, vectors=vectors, public=public)
    click.echo(f"installed for {len(languages)} lists{f', public for {public}' if public else ''}")
    if not able:
        print_error("this server has no pgvector: only search_fulltext will answer")
    elif settings.vectors != "pgvector:":
        print_error(
            f"the vectors are in {settings.vectors}: search_fulltext answers, the "
            "others once an index is filled with MAIL_VECTORS=pgvector:"
        )

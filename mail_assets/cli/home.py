"""The commands `init`, `completion`, `up`, `down`, `status` and `doctor`: set up a home."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from mail_assets.cli.command import (
    FAILED,
    check_month,
    examples,
    json_lines_option,
    json_option,
    pass_settings,
    print_json,
    print_note,
    print_table,
    report_errors,
)
from mail_assets.encoding.models import ALL_MINILM_L6_V2, advise_language
from mail_assets.environment import VARIABLES
from mail_assets.files import make_private_folder
from mail_assets.settings.lists import check_name, write_lists_file
from mail_assets.settings.settings import Settings, list_set, read_lists_path
from mail_assets.settings.values import SettingsError, absolute_path

if TYPE_CHECKING:
    from mail_assets.postgres.embedded import Cluster

PROGRAM = "mail-assets"
NEXT = """\
Next:
  mail-assets up                  start the database, check the model
  mail-assets backfill            fetch the archives and make them searchable
  mail-assets search "a question"
"""


@click.command(
    epilog=examples(
        "mail-assets init --name my-list --source https://lists.example.org/pipermail/my-list/"
    )
)
@click.option("--name", metavar="LIST", help="The list's name; it cannot be changed later.")
@click.option(
    "--source",
    metavar="PLACE",
    help="Its archives: a folder, a file, a URL, or KIND:PLACE (docs/sources.md).",
)
@click.option(
    "--dialect",
    metavar="NAME",
    help="Quoting of its mbox files (docs/sources.md); default: detected.",
)
@click.option("--language", metavar="NAME", help="The language of its mail; default: english.")
@click.option("--start", metavar="YYYY-MM", help="Its first month; default: 1995-01.")
@report_errors
def init(name: str | None, source: str | None, **more: str | None) -> None:
    """Write a first lists.toml.

    It has one mailing list, or an example to edit. MAIL_LISTS names the file; the default is the
    lists.toml of the checkout, or mail-assets/lists.toml in the configuration folder (~/.config).
    An existing file is not changed.
    """
    if bool(name) != bool(source) or (any(more.values()) and not name):
        raise click.UsageError("give both --name and --source, or no option at all")
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
    """Return a URL or an absolute path: a relative path would start at the folder of lists.toml."""
    from mail_assets.sources.urls import split_kind

    kind, place = split_kind(source)
    if "://" in place:
        return source
    path = absolute_path("--source", place)
    if not path.exists():
        raise SettingsError("--source", source, "no such folder or file")
    return f"{kind}:{path}" if kind else str(path)


@click.command(
    epilog=examples(
        'eval "$(mail-assets completion bash)"   # in ~/.bashrc; zsh alike',
        "mail-assets completion fish > ~/.config/fish/completions/mail-assets.fish",
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    The script completes commands, options and the names of lists.
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click knows each of the choices"
    variable = f"_{PROGRAM.upper().replace('-', '_')}_COMPLETE"
    click.echo(kind(context.find_root().command, {}, PROGRAM, variable).source())


@click.command(epilog=examples("mail-assets up"))
@click.option("--mend", is_flag=True, help="Create missing or changed parts of the schema again.")
@pass_settings
def up(settings: Settings, mend: bool) -> None:
    """Start the database, create the Dagster home, check the model.

    The schema is migrated. Without MAIL_PG_DSN the database is an embedded server below MAIL_HOME,
    which other commands also start on demand. If the model is not installed, the error names the
    command to install it.

    --mend creates tables, columns, indexes, functions and triggers that are missing or differ from
    this version's. A new table is empty: `doctor` names the command that fills it.
    """
    from mail_assets.defs.instance import use_dagster_home
    from mail_assets.encoding.open import check_model
    from mail_assets.indexes.vectors import check_mail_bucket
    from mail_assets.tables.lists import record_lists

    make_private_folder(settings.home)
    if mend:
        _mend_tables(settings)
    with settings.database.connect("up") as connection:
        record_lists(connection, settings.languages)
        version = connection.execute("select current_setting('server_version')").fetchone()
    click.echo(f"postgres {version[0] if version else '?'}: {describe_address(settings)}")
    dagster_home = use_dagster_home(settings)
    click.echo(f"dagster home: {dagster_home}")
    if settings.dagster_dir is None:
        click.echo(f"Dagster UI: export DAGSTER_HOME={shlex.quote(str(dagster_home))}")
        click.echo("            dagster dev -m mail_assets.definitions")
    check_model(settings.encoder, settings.model_cache)
    check_mail_bucket(settings.database, settings.vectors)
    click.echo(f"encoder: {settings.encoder} {settings.precision}")
    languages = (one.language for one in settings.lists.values())
    if advice := advise_language(settings.encoder, languages):
        click.echo(advice)


def _mend_tables(settings: Settings) -> None:
    import psycopg

    from mail_assets.postgres.database import begin_session
    from mail_assets.postgres.statements import mend_schema
    from mail_assets.tables.kept_rows import KEPT, REMADE

    url = settings.database.url()
    with begin_session(psycopg.connect(url, autocommit=True)) as connection:
        mend_schema(connection, REMADE.keys() - KEPT.keys())


@click.command(epilog=examples("mail-assets down", "mail-assets down --delete-data"))
@click.option("--delete-data", is_flag=True, help="Also delete the server's data, for good.")
@click.option("--yes", is_flag=True, help="Do not ask before deleting.")
@pass_settings
def down(settings: Settings, delete_data: bool, yes: bool) -> None:
    """Stop the embedded server. Nothing is lost; any command starts it again.

    With --delete-data the tables and Dagster's history are deleted. Archives, embeddings and
    vectors below MAIL_HOME stay.
    """
    server = find_server(settings)
    if delete_data:
        if not server or not server.paths.data.is_dir():
            click.echo("there is no embedded server")
            return
        if not yes:
            click.confirm(f"Delete all data in {server.paths.data}?", abort=True, err=True)
        server.remove()
        click.echo("deleted")
    else:
        click.echo("stopped" if server and server.stop() else "was not running")


@click.command(epilog=examples("mail-assets status"))
@json_option
@pass_settings
def status(settings: Settings, as_json: bool) -> None:
    """Show the settings and the state of the database.

    The environment variables that are set come last, without secrets. Nothing is started or
    created.
    """
    facts, given = read_status(settings), list_set()
    if as_json:
        print_json({**facts, "variables": given})
        return
    print_table((), facts.items())
    if given:
        click.echo()
        print_table((), given.items())


def read_status(settings: Settings) -> dict[str, str]:
    """Return the places and the encoder in use, and the state of the database."""
    from mail_assets.encoding.models import compute_fingerprint
    from mail_assets.indexes.names import index_name

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


@click.command(epilog=examples("mail-assets doctor", "mail-assets doctor --deep"))
@click.option("--deep", is_flag=True, help="Read all rows, files and indexes, and compare them.")
@json_lines_option
@pass_settings
def doctor(settings: Settings, deep: bool, as_json: bool) -> None:
    """List faults, each with the command that repairs it.

    It looks for months that failed or were made from older archives, indexes that are missing or of
    a former version, settings that contradict each other, an encoder that makes other vectors,
    locks of idle sessions, full disks, runs that can be pruned, and a server of another version.
    Nothing is changed, and no table is read completely. The exit code is 1 if something was found.

    --deep also compares everything with what was recorded: the schema, the rows of each month,
    archives and embeddings with their digests, and each entry of the indexes. It takes minutes for
    a million messages.
    """
    from mail_assets.cli.backfill import show_activity
    from mail_assets.defs.doctor import examine_home

    with show_activity("looking") as show:
        findings = examine_home(settings, show if deep else None)
    for one in findings:
        if as_json:
            print_json(one._asdict())
        else:
            click.echo(f"{one.problem}: {one.where}")
            click.secho(f"  {one.remedy}", bold=True)
    if findings:
        sys.exit(FAILED)
    print_note("nothing found")


def find_server(settings: Settings) -> "Cluster | None":
    """Return the embedded server, None before its first start; opening it creates its folder."""
    if not _folder(settings).is_dir():
        return None
    from mail_assets.postgres.database import embedded

    return embedded(settings.home)


def describe_address(settings: Settings) -> str:
    """Return the place of the database without a password: a folder, or HOST/DATABASE."""
    if not settings.pg_dsn:
        from mail_assets.postgres.database import embedded

        return f"embedded in {embedded(settings.home).paths.root}"
    from psycopg.conninfo import conninfo_to_dict

    facts = conninfo_to_dict(settings.pg_dsn)
    return f"{facts.get('host', 'local')}/{facts.get('dbname', '')}"


def describe_state(settings: Settings) -> str:
    """Return the place of the database, and whether it runs or answers; starts nothing."""
    server = find_server(settings)
    if not settings.pg_dsn and not server:
        return f"embedded in {_folder(settings)}: not made yet, starts on demand"
    import psycopg

    from mail_assets.postgres.programs import PostgresError

    try:
        if not settings.pg_dsn and server:
            state = "running" if server.running() else "stopped, starts on demand"
        else:
            with psycopg.connect(settings.pg_dsn, connect_timeout=5):
                state = "answers"
    except (PostgresError, psycopg.OperationalError) as error:
        state = " ".join(str(error).split())
    return f"{describe_address(settings)}: {state}"


def database_urls(settings: Settings) -> dict[str, str]:
    """Return name -> URL, for psycopg, of the mail database and of Dagster's database.

    If they are in the embedded server, it is started, and missing databases are created.
    """
    from mail_assets.postgres.database import DAGSTER, MAIL, embedded_dsn

    return {
        MAIL: settings.database.url(),
        DAGSTER: settings.dagster_url.replace("postgresql+psycopg2://", "postgresql://", 1)
        or embedded_dsn(settings.home, DAGSTER),
    }


def _folder(settings: Settings) -> Path:
    return settings.home / "postgres"

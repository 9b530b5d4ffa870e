"""Turn mailing-list archives into searchable indexes, with monthly-partitioned Dagster assets.

The warnings filter is here because it must run before any asset module is imported: code servers
and run workers import the package again. It names the message, not Dagster's category, so that
`mail_assets.mail` and `mail_assets.text` can be imported without Dagster. An import of the package
must not read the environment or open a connection.
"""

import warnings

warnings.filterwarnings("ignore", message="Parameter `backfill_policy`")

__version__ = "0.2.0.dev0"

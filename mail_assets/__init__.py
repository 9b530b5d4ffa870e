"""Mailing-list archives to searchable vectors, as monthly-partitioned Dagster assets.

What lives here: the one warnings filter. It must run before any asset module is
imported, because code servers and run workers import the package again. It names the
message and not Dagster's category, so that `mail_assets.mail` and `mail_assets.text`
can be imported where Dagster is not installed.
What does not: anything that reads the environment or opens a connection.
"""

import warnings

warnings.filterwarnings("ignore", message="Parameter `backfill_policy`")

__version__ = "0.2.0.dev0"

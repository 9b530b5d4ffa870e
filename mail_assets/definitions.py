"""The module that `dg` and `dagster` load, by pyproject.toml or `-m mail_assets.definitions`.

It merges the definitions of this project with those of the modules in mail_assets/own.
"""

import warnings

import dagster as dg

import mail_assets.own
from mail_assets.defs import definitions


@dg.definitions
def defs() -> dg.Definitions:
    """Build the definitions from the environment and lists.toml."""
    with warnings.catch_warnings():
        # a preview function of Dagster; a test covers it
        warnings.simplefilter("ignore", dg.PreviewWarning)
        own = dg.load_definitions_from_package_module(mail_assets.own)
    return dg.Definitions.merge(definitions.defs(), own)

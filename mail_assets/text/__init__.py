"""Pure functions on the text of a message: chunks for the encoder, identifiers for full text.

Nothing here knows Dagster, SQL, settings or the network.
"""

"""Pure functions on the text of a message: chunks for the encoder, identifiers for full text.

They use neither Dagster nor SQL, settings or the network.
"""

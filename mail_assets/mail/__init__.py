"""Pure functions on the bytes and text of mail: splitting, parsing, segments, threads.

Nothing here knows Dagster, SQL, settings or the network.
"""

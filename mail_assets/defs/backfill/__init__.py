"""Backfills from the command line: the same runs as the UI's, one for each list and year."""

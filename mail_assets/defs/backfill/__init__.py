"""Backfills from the command line: the same runs as the UI starts, one per list and year."""

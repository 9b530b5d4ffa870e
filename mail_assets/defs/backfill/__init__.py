"""Backfills from the command line: the same runs as the UI would start, one per list and year."""

"""Threads: which message answers which, from the ids that messages name."""

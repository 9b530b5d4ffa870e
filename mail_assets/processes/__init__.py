"""Processes that compute for this one, each behind a pipe."""

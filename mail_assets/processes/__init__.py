"""Processes that compute for this one, each behind a pipe; what this one leaves of memory."""

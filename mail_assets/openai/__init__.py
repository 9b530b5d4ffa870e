"""Servers that speak OpenAI's HTTP API: requests, streams and errors.

Nothing here knows mail. Vectors are made in `encoding/`, answers in `answers/`.
"""

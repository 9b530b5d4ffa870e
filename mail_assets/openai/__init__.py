"""Servers that speak OpenAI's HTTP API: their settings, requests to them, streams from them.

Nothing here knows mail: vectors are encoding/endpoint.py, answers are answers/answer.py.
"""

"""Servers that speak OpenAI's HTTP API: their settings, and requests to them.

Nothing here knows what is asked: vectors are encoding/endpoint.py, answers are search/chat.py.
"""

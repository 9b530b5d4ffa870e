"""Summarize threads: choose or write sentences, each with its position in a message."""

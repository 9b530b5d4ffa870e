"""Summaries of threads: from the messages of a thread to sentences, each with its place."""

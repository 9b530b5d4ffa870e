"""Summaries of threads: pure functions from the messages of a thread to its telling sentences.

What does not live here: rows (tables/), and when a thread is summarized (steps/).
"""

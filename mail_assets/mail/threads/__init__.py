"""Answers and their parents: threads by the ids that messages name."""

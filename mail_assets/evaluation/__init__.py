"""Evaluation: how well search answers judged queries, and whether it got worse."""

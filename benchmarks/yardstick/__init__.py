"""Yardstick for search in mailing lists, made of a public list and the repository it discusses.

docs/yardstick.md describes how each set is made, its limits, and how to repeat the measurement.
"""

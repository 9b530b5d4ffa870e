"""A yardstick for search in mailing lists, made of a public list and the repository it discusses.

docs/yardstick.md says how each set is made, what it cannot show, and how to repeat the measurement.
"""

"""All configuration, typed and checked, from the environment and lists.toml.

`variables` is the table of all settings, `values` parses single values, `settings` reads and joins
them, and `lists` reads lists.toml.
"""

"""All configuration, typed and checked, from the environment and lists.toml."""

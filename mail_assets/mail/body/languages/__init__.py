"""Phrases by which mail programs announce a quote, one TOML file for each language."""

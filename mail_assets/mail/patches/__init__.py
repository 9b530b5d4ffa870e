"""Patches that were mailed: their diffs, subjects and versions. Pure functions."""

"""MISSING."""

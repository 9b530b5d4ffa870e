"""search/language."""

"""Vector indexes: one contract, one filter language, one file for each backend."""

"""Rows in the mail database: one module a table, each statement in sql/ under the same name."""

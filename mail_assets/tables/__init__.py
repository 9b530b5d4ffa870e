"""Rows in the mail database: one module for each table, its statements in sql/ under its name."""

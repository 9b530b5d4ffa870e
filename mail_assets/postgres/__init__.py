"""PostgreSQL: the embedded server or the user's own, connections, schema, named statements."""

"""The PostgreSQL server: embedded or the user's own, connections, schema, named statements."""

"""The PostgreSQL server: embedded or the user's own, connections, migrations, named statements."""

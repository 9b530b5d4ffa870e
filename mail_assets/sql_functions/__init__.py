"""SQL functions: search inside the mail database, for drivers and RPC."""

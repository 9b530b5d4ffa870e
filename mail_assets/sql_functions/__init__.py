"""Search as functions of the mail database, for drivers and RPC."""

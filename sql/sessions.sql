-- Sessions: what each asks of the server when it begins, and which it is.

-- name: keep_alive
-- A session ends, and with it its locks on months, a minute after its machine is gone; by the
-- server's defaults (of Linux: 2 hours and 11 minutes). Over a Unix socket it has no effect.
select
    set_config('tcp_keepalives_idle', '30', false),
    set_config('tcp_keepalives_interval', '10', false),
    set_config('tcp_keepalives_count', '3', false)

-- name: process
-- The server's process that answers, which a pooler may change between transactions.
select pg_backend_pid()

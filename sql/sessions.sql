-- Sessions: their settings, and checks of a server.

-- name: begin
-- The settings that our statements rely on, against those of the role, the database or the server.
-- First: how values are written (psycopg reads no other dates and intervals; with fewer digits a
-- float8 changes), how statements and texts are read, days of UTC, and that a statement sees what
-- was committed before it, because it may have waited for a lock.
-- Then: a session, and with it its locks on months, ends a minute after its machine is gone; the
-- default of Linux is 2 hours and 11 minutes. This has no effect over a Unix socket.
-- Last: no limits of time. Servers may have limits for web pages (Supabase: 2 minutes a statement),
-- which would end a run that waits for another of its month, a migration or the making of an index.
-- Programs that serve pages set limits of their own.
select
    set_config('datestyle', 'ISO', false),
    set_config('intervalstyle', 'postgres', false),
    set_config('extra_float_digits', '1', false),
    set_config('bytea_output', 'hex', false),
    set_config('standard_conforming_strings', 'on', false),
    set_config('array_nulls', 'on', false),
    set_config('client_encoding', 'UTF8', false),
    set_config('timezone', 'UTC', false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('tcp_keepalives_idle', '30', false),
    set_config('tcp_keepalives_interval', '10', false),
    set_config('tcp_keepalives_count', '3', false),
    set_config('statement_timeout', '0', false),
    set_config('lock_timeout', '0', false),
    set_config('idle_in_transaction_session_timeout', '0', false),
    set_config('idle_session_timeout', '0', false),
    -- of PostgreSQL 17 and later
    case when current_setting('transaction_timeout', true) is not null
         then set_config('transaction_timeout', '0', false) end

-- name: process
-- The server's process that answers, which a pooler may change between transactions.
select pg_backend_pid()

-- name: encoding
-- The encoding of the database.
select current_setting('server_encoding')

-- name: closed_tables
-- Tables that row-level security hides from this user: it is active, and no policy lets the user
-- read. Of the first tables that are read: without rows they look like those of a new archive.
select c.relname::text, current_user::text
  from pg_class c
 where c.relnamespace = to_regnamespace(quote_ident(current_schema()))
   and c.relname in ('messages', 'schema_migrations')
   and row_security_active(c.oid)
   and not exists (
           select from pg_policy p, unnest(p.polroles) as r (id)
            where p.polrelid = c.oid and p.polpermissive and p.polcmd in ('r', '*')
              and (r.id = 0 or pg_has_role(r.id, 'usage')))
 order by c.relname

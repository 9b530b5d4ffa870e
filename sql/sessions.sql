-- Sessions: what each asks of the server when it begins, and which it is.

-- name: begin
-- What our statements rely on, whatever the role, the database or the server has set: how values
-- are written (psycopg reads no other dates and intervals; with fewer digits a float8 comes back as
-- another), how statements and texts are read, days of UTC, and that a statement sees what was
-- committed before it, for it may have waited for a lock.
-- Then that a session ends, and with it its locks on months, a minute after its machine is gone; by
-- the server's defaults (of Linux: 2 hours and 11 minutes). Over a Unix socket that has no effect.
-- Last that a session may wait and work for as long as that takes. Servers are given limits for
-- pages of the web (Supabase: 2 minutes a statement), which would end a run that waits for another of
-- its month, a migration or the making of an index. Who serves pages sets limits of its own later.
select
    set_config('datestyle', 'ISO', false),
    set_config('intervalstyle', 'postgres', false),
    set_config('extra_float_digits', '1', false),
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
-- How the database writes texts.
select current_setting('server_encoding')

-- name: closed_tables
-- What row-level security hides from this user whole: it is active, and no policy lets him read.
-- Of the tables that everything begins with: without rows they look like those of a new archive.
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

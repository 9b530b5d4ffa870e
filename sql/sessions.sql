-- Sessions: settings, and checks of a server.

-- name: begin
-- Overrides settings of the role, the database or the server.
-- 1. Our statements rely on these: output formats that psycopg reads (fewer float digits would change
--    a float8), how statements and texts are parsed, UTC, and READ COMMITTED, where a statement that
--    has waited for a lock sees what was committed meanwhile.
-- 2. Keepalives: if a machine fails, its session ends after a minute and releases its locks on months.
--    The default of Linux is 2 hours and 11 minutes. No effect over a Unix socket.
-- 3. No time limits. A server may have limits for web pages (Supabase: 2 minutes per statement), which
--    would end a run that waits for another, a migration, or the building of an index. Programs that
--    serve pages set their own limits.
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
    -- PostgreSQL 17 and later
    case when current_setting('transaction_timeout', true) is not null
         then set_config('transaction_timeout', '0', false) end

-- name: process
-- Process id of the server process. A pooler may change it between transactions.
select pg_backend_pid()

-- name: encoding
-- Encoding of the database.
select current_setting('server_encoding')

-- name: closed_tables
-- Tables that row-level security hides from this user: it is active, and no policy lets the user read.
-- Checks the tables that are read first; without rows they would look like a new archive.
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

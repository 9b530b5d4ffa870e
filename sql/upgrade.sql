-- What is copied to a server of another version. Used by postgres/upgrade.py.

-- name: databases
select datname
  from pg_database
 where datallowconn and not datistemplate
 order by datname

-- name: sessions
select application_name
  from pg_stat_activity
 where backend_type = 'client backend' and pid <> pg_backend_pid()

-- name: analyze
-- A dump has no statistics, and plans without them are bad ones.
analyze

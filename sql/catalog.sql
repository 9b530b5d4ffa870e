-- What the tables look like, for Dagster's metadata. Used by tables/catalog.py.

-- name: columns
select a.attname, format_type(a.atttypid, a.atttypmod), not a.attnotnull,
       col_description(a.attrelid, a.attnum)
  from pg_attribute a
 where a.attrelid = %(table)s::regclass and a.attnum > 0 and not a.attisdropped
 order by a.attnum

-- name: name
-- The table's full name: database, schema, table.
select current_database() || '.' || n.nspname || '.' || c.relname
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
 where c.oid = %(table)s::regclass

-- name: rows_mbox_archives
select count(*) from mbox_archives

-- name: rows_recorded
-- The rows of a table of months, as the months recorded them: of messages, `figure` is 'stored'.
select coalesce(sum((counts->>%(figure)s)::bigint), 0)::bigint
  from partitions
 where asset = %(table)s

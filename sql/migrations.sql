-- Search path before and during migrations. Used by postgres/statements.py.

-- name: search_path
-- Existing schemas of the search path, in order, with the columns of their table schema_migrations.
select s.name,
       array(select a.attname::text
               from pg_attribute a
               join pg_class c on c.oid = a.attrelid
               join pg_namespace n on n.oid = c.relnamespace
              where n.nspname = s.name and c.relname = 'schema_migrations' and a.attnum > 0
                and not a.attisdropped)
  from unnest(current_schemas(false)) with ordinality as s (name, place)
 order by s.place

-- name: reach_trigrams
-- Appends the schema of pg_trgm to the search path for this transaction. sql/schema.sql names an
-- operator class of pg_trgm without a schema, and pg_trgm may be outside of the search path (Supabase:
-- extensions). Queries need no such path: LIKE is an operator of pg_catalog.
select set_config('search_path',
                  concat_ws(', ', current_setting('search_path'), quote_ident(n.nspname)), true)
  from pg_extension e
  join pg_namespace n on n.oid = e.extnamespace
 where e.extname = 'pg_trgm' and n.nspname <> all(current_schemas(false))

-- name: schema
-- First schema of the search path, which has our tables.
select quote_ident(current_schema())

-- name: create_model
-- A schema that comes first in the search path, for one transaction.
create schema mail_assets_model;
select set_config('search_path', 'mail_assets_model, ' || current_setting('search_path'), true)

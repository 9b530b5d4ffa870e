-- The search path before and during migrations. Used by postgres/statements.py.

-- name: search_path
-- The schemas of the search path that exist, in order, with the columns of a table of migrations.
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
-- The schema names an operator class of pg_trgm without its own schema, which may be outside of the
-- search path (Supabase: extensions). It becomes the last of the path for this transaction. Queries
-- find the indexes by the operators of LIKE, which are in every path.
select set_config('search_path',
                  concat_ws(', ', current_setting('search_path'), quote_ident(n.nspname)), true)
  from pg_extension e
  join pg_namespace n on n.oid = e.extnamespace
 where e.extname = 'pg_trgm' and n.nspname <> all(current_schemas(false))

-- name: schema
-- The first schema of the search path, which has our tables.
select quote_ident(current_schema())

-- name: create_model
-- A schema before all others of the search path, for one transaction.
create schema mail_assets_model;
select set_config('search_path', 'mail_assets_model, ' || current_setting('search_path'), true)

-- What migrations look at and set before they are applied. Used by postgres/migrations.py.

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

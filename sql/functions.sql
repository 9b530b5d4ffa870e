-- What installing sql/functions/ asks and writes. Used by sql_functions/install.py.

-- name: place
-- The schema of the tables, and that of pgvector where it is there.
select current_schema(),
       (select n.nspname
          from pg_extension e
          join pg_namespace n on n.oid = e.extnamespace
         where e.extname = 'vector')

-- name: reads_anyway
select rolsuper or rolbypassrls or pg_has_role(rolname, current_user, 'member')
  from pg_roles
 where rolname = %(role)s

-- name: forget_languages
delete from list_languages

-- name: languages
insert into list_languages (list, language)
select * from unnest(%(lists)s::text[], %(languages)s::text[])

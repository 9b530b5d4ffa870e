-- Statements that install the functions of sql/functions/. Used by sql_functions/install.py.

-- name: schemas
-- The schema of the tables, and that of pgvector, null if it is not installed.
select current_schema(),
       (select n.nspname
          from pg_extension e
          join pg_namespace n on n.oid = e.extnamespace
         where e.extname = 'vector')

-- name: can_read_all
-- Whether a role can read all mail without a grant; no row if there is no such role.
select rolsuper or rolbypassrls or pg_has_role(rolname, current_user, 'member')
  from pg_roles
 where rolname = %(role)s

-- name: delete_languages
-- Remove the lists of an earlier installation.
delete from list_languages

-- name: insert_languages
-- Record the text search configuration of each list.
insert into list_languages (list, language)
select * from unnest(%(lists)s::text[], %(languages)s::text[])

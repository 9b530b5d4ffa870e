-- The place of a dump, and the extensions that it needs. Used by postgres/dumps.py.

-- name: place
-- A server by its time of start, a database, and the first schema of the search path.
select pg_postmaster_start_time()::text, current_database()::text, current_schema()::text

-- name: create_extensions
-- As the schema and `sql install` create them: the dump of a schema has no extensions.
do $$
declare
    one text;
begin
    for one in select name from pg_available_extensions where name = any({names}) loop
        execute format('create extension if not exists %I', one);
    end loop;
exception when insufficient_privilege then
    null;
end $$

-- Identity of a database, and the extensions that a dump needs. Used by postgres/dumps.py.

-- name: place
-- Identity: start time of the server, database, and first schema of the search path.
select pg_postmaster_start_time()::text, current_database()::text, current_schema()::text

-- name: create_extensions
-- A dump of a schema has no extensions: create those of the schema and of `sql install`.
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

-- Creates pgvector if the server has it and this user may create it.

do $$
begin
    if exists (select from pg_available_extensions where name = 'vector') then
        create extension if not exists vector;
    end if;
exception when insufficient_privilege then
    raise notice 'the extension vector cannot be created';
end $$;

-- Arguments that every function checks: the lists, and the number of rows.

-- The lists of lists.toml and the text search configuration of each, at the time of installation.
create table if not exists list_languages (
    list      text primary key,
    language  text not null
);

-- The lists to search: those of the argument, which must be known, or all if it is null.
create function searched_lists(in_lists text[]) returns text[]
language plpgsql stable security invoker set search_path = {path} as $$
declare
    known text[] := array(select list from list_languages order by list);
    unknown text[] := array(select unnest(in_lists) except select unnest(known));
begin
    if unknown <> '{}' then
        raise exception 'list % is unknown; there are: %',
              quote_literal(unknown[1]), array_to_string(known, ', ')
              using errcode = 'invalid_parameter_value',
                    hint = 'after a change of lists.toml run: mail-assets sql install';
    end if;
    return coalesce(in_lists, known);
end $$;

-- match_count, or an error if it is out of range.
create function checked_count(match_count integer) returns integer
language plpgsql immutable security invoker set search_path = {path} as $$
begin
    if match_count is null or match_count not between 1 and {max_limit} then
        raise exception 'match_count %: allowed are 1 to {max_limit}', match_count
              using errcode = 'invalid_parameter_value';
    end if;
    return match_count;
end $$;

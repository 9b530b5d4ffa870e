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

-- The number of a copy's text where several texts claim its id; 1 arrived first. Null otherwise.
create function text_of(message_id text, list text, month text, variant smallint) returns integer
language sql stable security invoker set search_path = {path} as $$
select place from contested_texts c
 where (c.message_id, c.list, c.month, c.variant) = ($1, $2, $3, $4)
$$;

-- The lists that carry a text, by its number or null.
create function lists_of(message_id text, text_number integer) returns text[]
language sql stable security invoker set search_path = {path} as $$
select array(select distinct c.list
               from messages c
              where c.message_id = $1
                and ($2 is null or text_of(c.message_id, c.list, c.month, c.variant) = $2)
              order by 1)
$$;

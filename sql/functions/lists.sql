-- Checks of arguments, and lists and threads as they are published.

-- Published lists, by the table lists. The caller's session has no say.
create function published_lists() returns text[]
language sql stable security invoker set search_path = {path} as $$
select array(select list from lists where published order by list)
$$;

-- Lists to search: those of the argument, which must be known; null means all.
create function searched_lists(in_lists text[]) returns text[]
language plpgsql stable security invoker set search_path = {path} as $$
declare
    known text[] := published_lists();
    unknown text[] := array(select unnest(in_lists) except select unnest(known));
begin
    if unknown <> '{}' then
        raise exception 'list % is unknown; there are: %',
              quote_literal(unknown[1]), array_to_string(known, ', ')
              using errcode = 'invalid_parameter_value',
                    hint = 'after a change of lists.toml run: mail-assets up';
    end if;
    return case when in_lists is null then known
                else array(select distinct unnest(in_lists) order by 1) end;
end $$;

-- Returns query_text. Raises an error if it is empty or too long.
create function checked_query(query_text text) returns text
language plpgsql immutable security invoker set search_path = {path} as $$
begin
    if query_text is null or btrim(query_text) = '' or length(query_text) > {max_query} then
        raise exception 'query_text has % characters: allowed are 1 to {max_query}',
              coalesce(length(btrim(query_text)), 0) using errcode = 'invalid_parameter_value';
    end if;
    return query_text;
end $$;

-- Returns match_count. Raises an error if it is out of range.
create function checked_count(match_count integer) returns integer
language plpgsql immutable security invoker set search_path = {path} as $$
begin
    if match_count is null or match_count not between 1 and {max_limit} then
        raise exception 'match_count %: allowed are 1 to {max_limit}', match_count
              using errcode = 'invalid_parameter_value';
    end if;
    return match_count;
end $$;

-- Number of a copy's text among the published texts of a contested id, from 1 for the first to arrive;
-- null if the id is not contested.
create function text_of(message_id text, list text, month text, variant smallint) returns integer
language sql stable security invoker set search_path = {path} as $$
with texts as (
    select o.place, (o.list, o.month, o.variant) = ($2, $3, $4) as is_own
      from contested_texts o
     where o.message_id = $1 and o.list = any(published_lists()))
select count(distinct t.place)::integer
  from texts own
  join texts t on t.place <= own.place
 where own.is_own
having (select count(distinct place) from texts) > 1
$$;

-- Published lists that carry a text. A null number means any text.
create function lists_of(message_id text, text_number integer) returns text[]
language sql stable security invoker set search_path = {path} as $$
select array(select distinct c.list
               from messages c
              where c.message_id = $1 and c.list = any(published_lists())
                and ($2 is null or text_of(c.message_id, c.list, c.month, c.variant) = $2)
              order by 1)
$$;

-- Returns the id that may be shown for a thread.
create function published_thread(thread_id text) returns text
language sql stable security invoker cost 1000 set search_path = {path} as $$
select shown_thread_id($1, published_lists())
$$;

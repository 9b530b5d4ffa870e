-- Public read access without addresses: the role {role} may use the schema mail_public only. Its views
-- and functions run as their owner. They return no column of addresses and replace addresses within
-- texts. Nobody else may read the tables.

create schema if not exists mail_public;

-- Pattern of mail addresses for a text: the pattern of web pages (mail/message/text_addresses.py)
-- without forms of disguise that the text does not have. Each form costs time at every match.
create function mail_public.address_pattern(content text) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp as $$
select case when content !~ {disguises} then {address_plain}
            else {address_lead} || '(?:' || concat_ws('|',
                     {address_plain},
                     {address_local} || '(?:' || (
                         select string_agg(form, '|' order by number)
                           from unnest(array[{address_forms}]) with ordinality as f (form, number)
                          where content ~ form) || ')+' || {address_more},
                     case when content ~ {address_listed} then {address_listed} end) || ')' end
$$;

-- Replaces the mail addresses in a text. Most subjects and names have no hint of one. No address crosses
-- a blank line, so the slow pattern runs only on paragraphs with a disguised address.
create function mail_public.hide_addresses(content text, shown text default '[address]')
returns text
language sql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp as $$
select case when content !~ {hints} then content
            when content !~ {disguises} then regexp_replace(content, {address_plain}, shown, 'g')
            else (select string_agg(
                             regexp_replace(part, mail_public.address_pattern(part), shown, 'g'),
                             e'\n\n' order by number)
                    from unnest(string_to_array(content, e'\n\n')) with ordinality
                         as parts (part, number)) end
$$;

-- Part of a text between two characters, counted from 0, with addresses replaced, also those that
-- cross its borders. Reads 400 characters on both sides; no address is longer (RFC 5321, 4.5.3.1).
create function mail_public.hide_addresses_between(content text, first integer, behind integer)
returns text
language sql immutable strict parallel safe security invoker
set search_path = pg_catalog, pg_temp as $$
with part as (
    select greatest(first - 400, 0) as at,
           substr(content, greatest(first - 400, 0) + 1,
                  behind - greatest(first - 400, 0) + 400) as text),
found as (
    select f.number, f.before, length(f.before) as size, coalesce(length(f.address[1]), 0) as length,
           p.at - length(f.before) - coalesce(length(f.address[1]), 0)
           + sum(length(f.before) + coalesce(length(f.address[1]), 0))
             over (order by f.number) as start
      from part p
     cross join lateral rows from (
               regexp_matches(p.text, mail_public.address_pattern(p.text), 'g'),
               regexp_split_to_table(p.text, mail_public.address_pattern(p.text)))
           with ordinality as f (address, before, number))
select coalesce(string_agg(
           substr(before, greatest(first - start, 0)::integer + 1,
                  greatest(least(start + size, behind) - greatest(start, first), 0)::integer)
           || case when length > 0 and start + size < behind and start + size + length > first
                   then '[address]' else '' end,
           '' order by number), '')
  from found
$$;

-- Text of a chunk, with addresses replaced, also those that its borders cut.
create function mail_public.hide_chunk(wanted text) returns text
language sql stable strict security invoker set search_path = pg_catalog, pg_temp as $$
select mail_public.hide_addresses(coalesce(string_agg(
           mail_public.hide_addresses_between(m.body_text, c.spans[i], c.spans[i + 1]),
           '' order by i), ''))
  from {schema}.chunks c
  join {schema}.messages m using (list, month, message_id, variant)
 cross join lateral generate_series(1, cardinality(c.spans), 2) as i
 where c.key = wanted
$$;

-- Node of a thread as if only published lists existed.
create function mail_public.thread_of(id text)
returns table (
    message_id text, thread_id text, parent_id text, root_id text, depth integer,
    "position" integer, is_ghost boolean, by_subject boolean)
language sql stable security definer set search_path = {path} as $$
select message_id, thread_id, parent_id, root_id, depth, position, is_ghost, by_subject
  from shown_node(id, published_lists())
$$;

create function mail_public.text_of(message_id text, list text, month text, variant smallint)
returns integer
language sql stable security definer set search_path = {path} as $$
select {schema}.text_of($1, $2, $3, $4)
$$;

create view mail_public.messages with (security_barrier = true) as
select m.list, m.month, m.message_id, m.variant, m.sent_at, t.thread_id,
       mail_public.hide_addresses(m.subject) as subject,
       mail_public.hide_addresses(m.from_name) as from_name,
       mail_public.hide_addresses(m.body_text) as body_text,
       m.arrived_at, c.place is not null as contested, c.place as text_number
  from {schema}.messages m
 cross join (select exists (select from {schema}.lists where not published) as any) hidden
  left join {schema}.contested_texts o using (message_id, list, month, variant)
 cross join lateral (
       select case when hidden.any and o.place is not null
                   then mail_public.text_of(m.message_id, m.list, m.month, m.variant)
                   else o.place end as place) c
  left join {schema}.threads raw
    on raw.message_id = m.message_id and coalesce(c.place, 1) = 1
 cross join lateral (
       select case when hidden.any and raw.thread_id is not null
                   then (select n.thread_id from mail_public.thread_of(m.message_id) n)
                   else raw.thread_id end as thread_id) t
 where m.list in (select p.list from {schema}.lists p where p.published);

create view mail_public.threads with (security_barrier = true) as
select message_id, thread_id, parent_id, root_id, depth, position, is_ghost, by_subject
  from {schema}.threads
 where not exists (select from {schema}.lists where not published)
union all
select n.message_id, n.thread_id, n.parent_id, n.root_id, n.depth, n.position, n.is_ghost,
       n.by_subject
  from {schema}.threads t
 cross join lateral mail_public.thread_of(t.message_id) n
 where exists (select from {schema}.lists where not published);

-- Replaces addresses in a query with a dot, so that a search cannot reveal who wrote to whom. A dot has
-- no words but keeps the query from being empty.
create function mail_public.search_fulltext(
    query_text text, match_count integer default 10, in_lists text[] default null,
    sent_after timestamptz default null, sent_before timestamptz default null)
returns table (
    message_id text, lists text[], thread_id text, subject text, from_name text,
    sent_at timestamptz, score float8, text_number integer)
language sql stable security definer set search_path = {path} as $$
select message_id, lists, thread_id, mail_public.hide_addresses(subject),
       mail_public.hide_addresses(from_name), sent_at, score, text_number
  from {schema}.search_fulltext(
           mail_public.hide_addresses({schema}.checked_query(query_text), ' . '), match_count, in_lists, sent_after,
           sent_before)
$$;

create function mail_public.search_semantic(
    query_embedding {embedding}, match_count integer default 10,
    match_threshold float8 default -1, in_lists text[] default null,
    sent_after timestamptz default null, sent_before timestamptz default null)
returns table (
    message_id text, lists text[], thread_id text, subject text, from_name text,
    sent_at timestamptz, similarity float8, chunk_key text, chunk text, text_number integer)
language sql stable security definer set search_path = {path} as $$
select message_id, lists, thread_id, mail_public.hide_addresses(subject),
       mail_public.hide_addresses(from_name), sent_at, similarity, chunk_key,
       mail_public.hide_chunk(chunk_key), text_number
  from {schema}.search_semantic(
           query_embedding, match_count, match_threshold, in_lists, sent_after, sent_before)
$$;

create function mail_public.search_hybrid(
    query_text text, query_embedding {embedding}, match_count integer default 10,
    full_text_weight float8 default 1, semantic_weight float8 default 1,
    thread_weight float8 default 3, in_lists text[] default null,
    sent_after timestamptz default null, sent_before timestamptz default null)
returns table (
    message_id text, lists text[], thread_id text, subject text, from_name text,
    sent_at timestamptz, score float8, full_text_rank bigint, semantic_rank bigint,
    similarity float8, chunk_key text, chunk text, text_number integer)
language sql stable security definer set search_path = {path} as $$
select message_id, lists, thread_id, mail_public.hide_addresses(subject),
       mail_public.hide_addresses(from_name), sent_at, score, full_text_rank, semantic_rank,
       similarity, chunk_key, mail_public.hide_chunk(chunk_key), text_number
  from {schema}.search_hybrid(
           mail_public.hide_addresses({schema}.checked_query(query_text), ' . '), query_embedding, match_count,
           full_text_weight, semantic_weight, thread_weight, in_lists, sent_after, sent_before)
$$;

create function mail_public.search_messages_with_chunks(
    query_embedding {embedding}, match_threshold float8 default 0.3,
    match_count integer default 10, in_lists text[] default null,
    sent_after timestamptz default null, sent_before timestamptz default null)
returns table (
    message_id text, lists text[], thread_id text, subject text, from_name text,
    sent_at timestamptz, max_similarity float8, average_similarity float8, chunks jsonb,
    text_number integer)
language sql stable security definer set search_path = {path} as $$
select message_id, lists, thread_id, mail_public.hide_addresses(subject),
       mail_public.hide_addresses(from_name), sent_at, max_similarity, average_similarity,
       (select jsonb_agg(
                   one || jsonb_build_object('text', mail_public.hide_chunk(one ->> 'key'))
                   order by place)
          from jsonb_array_elements(chunks) with ordinality as c (one, place)),
       text_number
  from {schema}.search_messages_with_chunks(
           query_embedding, match_threshold, match_count, in_lists, sent_after, sent_before)
$$;

-- Closes the tables: the role has no grant, and row-level security hides all rows from everybody but
-- owner and superuser if somebody grants access later, as Supabase does by default in the schema
-- public. A role of your own that reads the tables needs a policy. Row-level security does not cover
-- TRUNCATE, so it is revoked. Tables that have it already are skipped: enabling it again would wait for
-- all readers of the table and block new ones.
do $$
declare
    one record;
begin
    for one in
        select oid::regclass as name, relrowsecurity or relkind = 'v' as is_closed from pg_class
         where relnamespace = to_regnamespace(quote_ident(current_schema()))
           and relkind in ('r', 'v')
           and relname in (
               'mbox_archives', 'messages', 'contested_texts', 'quarantine', 'threads', 'thread_aliases',
               'thread_changes', 'chunks', 'patches', 'patch_series', 'patch_states', 'patch_outcomes', 'patch_keys',
               'patch_changes', 'commits', 'commit_links', 'commit_link_sources',
               'commit_link_changes', 'commit_link_months', 'vectors', 'partitions', 'removals', 'removed_messages',
               'forget_keys', 'cut_messages', 'archive_entries', 'removed_upstream',
               'former_archives', 'encoded_texts', 'encoder_probes', 'words',
               'senders', 'thread_summaries', 'summary_changes', 'search_audit', 'served_searches',
               'month_checks', 'indexes', 'live_indexes', 'promotions',
               'lists', 'schema_migrations', 'thread_contents', 'left_out', 'shown_messages',
               'shown_texts', 'shown_summaries', 'applied_parts',
               'mixed_patch_states', 'shown_patch_states', 'changed_standing')
    loop
        if not one.is_closed then
            execute format('alter table %s enable row level security', one.name);
        end if;
        execute format('revoke all on %s from public, %I', one.name, {role_name});
    end loop;
end $$;

revoke all on all functions in schema mail_public from public;
grant usage on schema mail_public to {role};
grant select on mail_public.messages, mail_public.threads to {role};
grant execute on all functions in schema mail_public to {role};

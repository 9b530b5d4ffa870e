-- Semantic leg: chunks and messages by their distance to a vector, in the live index of
-- MAIL_VECTORS=pgvector:. Each call looks up the table of the live index and puts its name into the
-- statement, so a promotion takes effect at the next call, even if the number of dimensions changes. A
-- view would have to be created again at each promotion.

-- Table of the live index.
create function live_vectors() returns regclass
language plpgsql stable security invoker set search_path = {path} as $$
declare
    live text := (select name from live_indexes where bucket = 'pgvector:');
    place regclass;
begin
    if live is null then
        raise exception 'no vector index is live in this database: the vectors are in %',
              coalesce((select string_agg(bucket, ', ' order by bucket) from live_indexes),
                       'no bucket yet')
              using errcode = 'object_not_in_prerequisite_state',
                    hint = 'set MAIL_VECTORS=pgvector: and run: mail-assets index build';
    end if;
    place := to_regclass(format('vectors.%I', live));
    if place is null then
        raise exception 'the live index % has no table in the schema vectors', live
              using errcode = 'undefined_table',
                    hint = 'with MAIL_VECTORS=pgvector: run: mail-assets index build';
    end if;
    return place;
end $$;

-- The nearest chunks, up to `most`, nearest first, as the pgvector store finds them.
create function nearest_chunks(
    query_embedding {embedding}, most integer, in_lists text[],
    sent_after timestamptz, sent_before timestamptz)
returns table (key text, distance float8)
language plpgsql stable security invoker set search_path = {path} as $$
declare
    live constant regclass := live_vectors();
    dimension constant integer := (select atttypmod from pg_attribute
                                    where attrelid = live and attname = 'embedding');
    passes constant text :=
        ' where ($2 is null or list = any($2))'
        ' and ($3 is null or sent_at >= extract(epoch from $3)::float8)'
        ' and ($4 is null or sent_at < extract(epoch from $4)::float8)';
    -- settings of the caller, restored at the end
    scan constant text := current_setting('hnsw.iterative_scan', true);
    ef constant text := current_setting('hnsw.ef_search', true);
    exact boolean := false;
begin
    if query_embedding is null or vector_dims(query_embedding::halfvec) <> dimension then
        raise exception 'query_embedding has % numbers, the live index % has %',
              coalesce(vector_dims(query_embedding::halfvec), 0), live, dimension
              using errcode = 'invalid_parameter_value',
                    hint = (select format('encode the question with %s', encoder) from indexes
                             where bucket = 'pgvector:' and name = (
                                   select relname from pg_class where oid = live));
    end if;
    if l2_norm(query_embedding::halfvec) = 0 then
        raise exception 'query_embedding is zero: it has no direction, and so no nearest chunks'
              using errcode = 'invalid_parameter_value';
    end if;
    -- without iterative_scan, a filtered scan stops after ef_search rows, whether they match or not
    perform set_config('hnsw.iterative_scan', 'relaxed_order', true),
            set_config('hnsw.ef_search', '{ef_search}', true);
    if in_lists is not null or sent_after is not null or sent_before is not null then
        execute format('select count(*) <= {exact_rows} from (select from %s%s limit {exact_rows} + 1) few',
                       live, passes)
           into exact using query_embedding, in_lists, sent_after, sent_before;
    end if;
    -- `+ 0` keeps out the HNSW index, which supports only the plain distance
    return query execute format(
        'select key, distance from ('
        ' select key, embedding <=> $1::halfvec as distance from %s%s'
        ' order by (embedding <=> $1::halfvec)%s limit $5) nearest'
        ' order by distance, key', live, passes, case when exact then ' + 0' else '' end)
        using query_embedding, in_lists, sent_after, sent_before, most;
    perform set_config('hnsw.iterative_scan', coalesce(scan, 'off'), true),
            set_config('hnsw.ef_search', coalesce(ef, '40'), true);
end $$;

-- Chunks of messages, nearest first, in one copy per message: the copy with the nearest chunk. Of
-- contested ids, the first text whose distance is nearly the least. Vectors whose chunk was replaced
-- are left out. `nth`: number within the message.
create function semantic_chunks(
    query_embedding {embedding}, match_count integer, in_lists text[],
    sent_after timestamptz, sent_before timestamptz)
returns table (
    key text, message_id text, list text, month text, variant smallint, text_number integer,
    similarity float8, place bigint, nth bigint)
language sql stable security invoker set search_path = {path} as $$
with searched as materialized (select searched_lists(in_lists) as lists),
found as (
    select n.key, c.message_id, c.list, c.month, c.variant, n.distance,
           text_of(c.message_id, c.list, c.month, c.variant) as text_number,
           min(n.distance) over (partition by c.message_id) as least
      from searched
     cross join lateral nearest_chunks(
               query_embedding, greatest({semantic_depth}, 3 * checked_count(match_count)),
               case when in_lists is not null then searched.lists end, sent_after, sent_before) n
      join chunks c using (key)
      join messages m using (list, month, message_id, variant)
     where m.list = any(searched.lists)
       and (sent_after is null or m.sent_at >= sent_after)
       and (sent_before is null or m.sent_at < sent_before)),
chosen as (
    select f.*, min(text_number)
                filter (where 1 - distance >= 1 - least - (1 - {nearly}) * abs(1 - least))
                over (partition by message_id) as first_text
      from found f),
placed as (
    select c.*, row_number() over (order by distance, key) as place,
           first_value((list, month, variant))
           over (partition by message_id order by distance, key) as nearest
      from chosen c
     where text_number is not distinct from first_text)
select key, message_id, list, month, variant, text_number,
       round((1 - distance)::numeric, 6)::float8, place,
       row_number() over (partition by message_id order by place)
  from placed
 where (list, month, variant) = nearest
$$;

-- Returns match_threshold. Raises an error if it is null or NaN.
create function checked_threshold(match_threshold float8) returns float8
language plpgsql immutable security invoker set search_path = {path} as $$
begin
    if match_threshold is null or match_threshold = 'NaN' then
        raise exception 'match_threshold %: must be a number; -1 leaves nothing out', match_threshold
              using errcode = 'invalid_parameter_value';
    end if;
    return match_threshold;
end $$;

-- Semantic search: messages by their nearest chunk.
create function search_semantic(
    query_embedding {embedding}, match_count integer default 10,
    match_threshold float8 default -1, in_lists text[] default null,
    sent_after timestamptz default null, sent_before timestamptz default null)
returns table (
    message_id text, lists text[], thread_id text, subject text, from_name text,
    sent_at timestamptz, similarity float8, chunk_key text, chunk text, text_number integer)
language sql stable security invoker set search_path = {path} as $$
select s.message_id, lists_of(s.message_id, s.text_number),
       published_thread(t.thread_id), m.subject, m.from_name, m.sent_at, s.similarity, s.key, c.text, s.text_number
  from semantic_chunks(query_embedding, match_count, in_lists, sent_after, sent_before) s
  join messages m using (list, month, message_id, variant)
  join chunks c using (key)
  left join threads t on t.message_id = s.message_id and coalesce(s.text_number, 1) = 1
 where s.nth = 1 and s.similarity >= checked_threshold(match_threshold)
 order by s.place
 limit checked_count(match_count)
$$;

-- Messages with all their chunks above the threshold, nearest first.
create function search_messages_with_chunks(
    query_embedding {embedding}, match_threshold float8 default 0.3,
    match_count integer default 10, in_lists text[] default null,
    sent_after timestamptz default null, sent_before timestamptz default null)
returns table (
    message_id text, lists text[], thread_id text, subject text, from_name text,
    sent_at timestamptz, max_similarity float8, average_similarity float8, chunks jsonb,
    text_number integer)
language sql stable security invoker set search_path = {path} as $$
select s.message_id, lists_of(s.message_id, s.text_number),
       published_thread(t.thread_id), m.subject, m.from_name, m.sent_at, s.max_similarity, s.average_similarity,
       s.chunks, s.text_number
  from (select n.message_id, n.list, n.month, n.variant, n.text_number, min(n.place) as place,
               max(n.similarity) as max_similarity, avg(n.similarity) as average_similarity,
               jsonb_agg(
                   jsonb_build_object('key', n.key, 'index', c.index, 'text', c.text,
                                      'similarity', n.similarity)
                   order by n.nth) as chunks
          from semantic_chunks(query_embedding, match_count, in_lists, sent_after, sent_before) n
          join chunks c using (key)
         where n.similarity >= checked_threshold(match_threshold)
         group by n.message_id, n.list, n.month, n.variant, n.text_number) s
  join messages m using (list, month, message_id, variant)
  left join threads t on t.message_id = s.message_id and coalesce(s.text_number, 1) = 1
 order by s.place
 limit checked_count(match_count)
$$;

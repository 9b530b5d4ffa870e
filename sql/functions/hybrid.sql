-- Both legs fused by weighted reciprocal ranks (Cormack, Clarke, Buettcher 2009):
--     score = full_text_weight / (rrf_k + full_text_rank) + semantic_weight / (rrf_k + semantic_rank)
-- A leg that did not find the message adds nothing. Phrases and exclusions of the query hold for
-- both legs.

-- A weight or rrf_k, or an error if it is out of range.
create function checked_weight(weight float8) returns float8
language plpgsql immutable security invoker set search_path = {path} as $$
begin
    if weight is null or weight not between 0 and 1e9 then
        raise exception 'a weight or rrf_k of %: allowed are 0 to 1e9', weight
              using errcode = 'invalid_parameter_value';
    end if;
    return weight;
end $$;

-- Hybrid search: full text and vectors.
create function search_hybrid(
    query_text text, query_embedding {embedding}, match_count integer default 10,
    full_text_weight float8 default 1, semantic_weight float8 default 1,
    rrf_k float8 default 60, in_lists text[] default null,
    sent_after timestamptz default null, sent_before timestamptz default null)
returns table (
    message_id text, lists text[], thread_id text, subject text, from_name text,
    sent_at timestamptz, score float8, full_text_rank bigint, semantic_rank bigint,
    similarity float8, chunk_key text, chunk text)
language sql stable security invoker set search_path = {path} as $$
with words as (
    select * from fulltext_messages(query_text, in_lists, sent_after, sent_before)),
required as materialized (
    select q.lists, q.required::tsquery as question
      from query_questions(query_text, searched_lists(in_lists)) q
     where q.required <> ''),
meaning as (
    select s.*, row_number() over (order by s.place) as rank
      from semantic_chunks(query_embedding, match_count, in_lists, sent_after, sent_before) s
      join messages m using (list, month, message_id, variant)
     where s.nth = 1
       and (not exists (select from required)
            or exists (select from required r
                        where m.list = any(r.lists) and m.search @@ r.question))),
fused as (
    select message_id,
           case when meaning.key is null then words.list else meaning.list end as list,
           case when meaning.key is null then words.month else meaning.month end as month,
           case when meaning.key is null then words.variant else meaning.variant end as variant,
           coalesce(checked_weight(full_text_weight) / (checked_weight(rrf_k) + words.rank), 0)
           + coalesce(checked_weight(semantic_weight) / (checked_weight(rrf_k) + meaning.rank), 0)
           as score,
           words.rank as full_text_rank, meaning.rank as semantic_rank,
           meaning.similarity, meaning.key
      from words
      full join meaning using (message_id))
select f.message_id,
       array(select distinct c.list from messages c where c.message_id = f.message_id order by 1),
       t.thread_id, m.subject, m.from_name, m.sent_at, f.score, f.full_text_rank,
       f.semantic_rank, f.similarity, f.key, c.text
  from fused f
  join messages m using (list, month, message_id, variant)
  left join chunks c on c.key = f.key
  left join threads t on t.message_id = f.message_id
 order by f.score desc, f.message_id
 limit checked_count(match_count)
$$;

-- Fuses both legs by score. The score of a leg is a share of the best possible one:
--     own      = W * full text score + (1 - W) * similarity
--     evidence = the same, with the best scores of the message's thread in each leg
--     score    = (own + T * evidence) / (1 + T)
-- The more of the query's weight the best message contains (covered), the more full text counts and
-- the less the thread: W = 0.5 + 0.45 * covered, T = thread_weight * (1 - covered). A leg that did
-- not find a message contributes 0. Phrases and exclusions apply to both legs.

-- Returns a weight. Raises an error if it is out of range.
create function checked_weight(weight float8) returns float8
language plpgsql immutable security invoker set search_path = {path} as $$
begin
    if weight is null or weight not between 0 and 1e9 then
        raise exception 'a weight of %: allowed are 0 to 1e9', weight
              using errcode = 'invalid_parameter_value';
    end if;
    return weight;
end $$;

-- Hybrid search: full text and vectors.
create function search_hybrid(
    query_text text, query_embedding {embedding}, match_count integer default 10,
    full_text_weight float8 default 1, semantic_weight float8 default 1,
    thread_weight float8 default 3, in_lists text[] default null,
    sent_after timestamptz default null, sent_before timestamptz default null)
returns table (
    message_id text, lists text[], thread_id text, subject text, from_name text,
    sent_at timestamptz, score float8, full_text_rank bigint, semantic_rank bigint,
    similarity float8, chunk_key text, chunk text, text_number integer)
language sql stable security invoker set search_path = {path} as $$
with words as (
    select * from fulltext_messages(query_text, in_lists, sent_after, sent_before)),
required as materialized (
    select q.lists, q.required::tsquery as question, q.phrased
      from query_questions(query_text, searched_lists(in_lists)) q
     where q.required <> ''),
meaning as (
    select s.*, row_number() over (order by s.place) as rank
      from semantic_chunks(query_embedding, match_count, in_lists, sent_after, sent_before) s
      join messages m using (list, month, message_id, variant)
     where s.nth = 1
       and not exists (select from words w
                        where w.message_id = s.message_id
                          and w.text_number is distinct from s.text_number)
       and not exists (select from required r
                        where m.list = any(r.lists) and not m.search @@ r.question)
       and (not exists (select from required where phrased)
            or exists (select from required r where r.phrased and m.list = any(r.lists)))),
mix as materialized (
    select checked_weight(full_text_weight) * (0.5 + 0.45 * covered) as full_text,
           checked_weight(semantic_weight) * (0.5 - 0.45 * covered) as semantic,
           checked_weight(thread_weight) * (1 - covered) as threads
      from (select coalesce((select covered from words where rank = 1), 0) as covered) best),
found as (
    select message_id, t.thread_id, coalesce(words.text_number, meaning.text_number) as text_number,
           case when meaning.key is null then words.list else meaning.list end as list,
           case when meaning.key is null then words.month else meaning.month end as month,
           case when meaning.key is null then words.variant else meaning.variant end as variant,
           coalesce(words.score, 0) as full_text,
           greatest(coalesce(meaning.similarity, 0), 0) as semantic,
           words.rank as full_text_rank, meaning.rank as semantic_rank,
           meaning.similarity, meaning.key
      from words
      full join meaning using (message_id)
      left join threads t using (message_id)),
fused as (
    select f.*, coalesce(
               (mix.full_text * (f.full_text + mix.threads * max(f.full_text) over thread)
                + mix.semantic * (f.semantic + mix.threads * max(f.semantic) over thread))
               / nullif((mix.full_text + mix.semantic) * (1 + mix.threads), 0), 0) as score
      from found f
     cross join mix
    window thread as (partition by coalesce(
               case when f.text_number > 1 then null else f.thread_id end, f.message_id)))
select f.message_id, lists_of(f.message_id, f.text_number),
       case when f.text_number > 1 then null else published_thread(f.thread_id) end, m.subject, m.from_name, m.sent_at, round(f.score::numeric, 6)::float8,
       f.full_text_rank, f.semantic_rank, f.similarity, f.key, c.text,
       f.text_number
  from fused f
  join messages m using (list, month, message_id, variant)
  left join chunks c on c.key = f.key
 order by round(f.score::numeric, 6) desc, f.message_id
 limit checked_count(match_count)
$$;

-- Full-text leg: messages ranked by BM25, as in search/fulltext.py. Installing the functions inserts the
-- statements of sql/functions.sql.

-- Lexemes of a query and their weights, rarest first: see search/query.py.
create function fulltext_terms(query text, lexemes text[], pieces text[])
returns table (lexeme text, messages bigint, weight float8)
language plpgsql stable security invoker
set search_path = {path} set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
    weighed record;
    given record;
begin
    -- The greatest share of each lexeme: as a word, an identifier, or a piece of an identifier.
    select coalesce(array_agg(s.lexeme), '{}') as lexemes, array_agg(s.share) as shares
      into weighed
      from (select u.lexeme, max(u.share) as share
              from query_words(query) as w
             cross join lateral (
                   select unnest(pieces || w.parts), {piece}::float8
                   union all select unnest(lexemes), 1.0::float8
                   union all select unnest(w.identifiers), {name}::float8) u (lexeme, share)
             group by u.lexeme) s;
    select weighed.lexemes as lexemes, {counted} as most,
           array(select any_of(array[l]) from unnest(weighed.lexemes) with ordinality as o (l, place)
                  order by place) as queries
      into given;
    return query
    with counts (corpus, has) as (
{frequencies}
    )
    select l.lexeme, c.has,
           l.share * ln(1 + (greatest(c.corpus - c.has, 0) + 0.5)::float8 / (c.has + 0.5))
      from (select corpus, has, row_number() over () as place from counts) c
      join unnest(weighed.lexemes, weighed.shares) with ordinality as l (lexeme, share, place)
           using (place)
     order by c.has, l.lexeme collate "C";
end $$;

-- Returns the tsquery that selects the messages to rank.
create function fulltext_choice(narrow text, required text, lexemes text[], messages bigint[])
returns text
language plpgsql immutable security invoker set search_path = {path} as $$
declare
    there text[];
    rare text[];
    wide text := narrow;
begin
    select array_agg(t.lexeme order by t.place),
           array_agg(t.lexeme order by t.place) filter (where t.running <= {candidates})
      into there, rare
      from (select u.lexeme, u.place, sum(u.has) over (order by u.place) as running
              from unnest(lexemes, messages) with ordinality as u (lexeme, has, place)
             where u.has > 0) t;
    if rare is not null then
        wide := wide || ' | ' || any_of(rare);
    elsif cardinality(there) > 1 then
        wide := wide || ' | ' || any_of(there[1:1]) || ' & (' || any_of(there[2:]) || ')';
    elsif there is not null then
        wide := wide || ' | ' || any_of(there);
    end if;
    return case when required = '' then wide else '(' || wide || ') & (' || required || ')' end;
end $$;

-- Messages ranked by their words, per language. score: share of the best possible score. covered:
-- share of the query's weight that the message contains.
create function fulltext_candidates(
    query text, in_lists text[], sent_after timestamptz, sent_before timestamptz)
returns table (
    message_id text, list text, month text, variant smallint, thread_id text, score float8,
    covered float8)
language plpgsql stable security invoker
set search_path = {path} set plan_cache_mode = force_custom_plan
set client_min_messages = warning as $$
#variable_conflict use_column
declare
    in_language record;
    given record;
begin
    -- If the query has phrases in one language, all languages need them: a list is left out if a
    -- phrase has no lexeme in its language, as in search/lexemes.py. An excluded word without a
    -- lexeme excludes nothing.
    for in_language in
        select q.*
          from (select *, bool_or(phrased) over () as strict
                  from query_questions(query, in_lists)) q
         where q.narrow <> '' and (q.phrased or not q.strict)
    loop
        select array_agg(any_of(array[t.lexeme]) order by t.messages, t.lexeme collate "C")
               as queries,
               array_agg(t.weight order by t.messages, t.lexeme collate "C") as weights,
               sum(t.weight) as weight,
               fulltext_choice(
                   in_language.narrow, in_language.required,
                   array_agg(t.lexeme order by t.messages, t.lexeme collate "C"),
                   array_agg(t.messages order by t.messages, t.lexeme collate "C")) as question,
               in_language.lists as lists,
               coalesce(sent_after, '-infinity') as after,
               coalesce(sent_before, 'infinity') as before,
               {k1}::float8 as k1, {k1}::float8 + 1 as k1_1, {b}::float8 as b,
               {pivot}::float8 as pivot, {subject}::float8 as heading,
               {candidates} as candidates, {depth} as most
          into given
          from fulltext_terms(query, in_language.lexemes, in_language.pieces) t;
        continue when coalesce(given.weight, 0) <= 0;
        return query
        select f.message_id, f.list, f.month, f.variant, f.thread_id,
               round((f.score / (given.weight * given.k1_1))::numeric, 6)::float8,
               f.covered / given.weight
          from (
{fulltext}
               ) f;
    end loop;
end $$;

-- The best {depth} messages, one copy each: of the matching texts of a contested id, the first to
-- arrive.
create function fulltext_messages(
    query text, in_lists text[], sent_after timestamptz, sent_before timestamptz)
returns table (
    message_id text, list text, month text, variant smallint, thread_id text, score float8,
    covered float8, text_number integer, rank bigint)
language sql stable security invoker set search_path = {path} as $$
select f.*, row_number() over (order by f.score desc, f.message_id) as rank
  from (select distinct on (c.message_id) c.*,
               text_of(c.message_id, c.list, c.month, c.variant) as text_number
          from fulltext_candidates(query, searched_lists(in_lists), sent_after, sent_before) c
         order by c.message_id, text_number, c.score desc, c.list, c.month, c.variant) f
 order by rank
 limit {depth}
$$;

-- Full-text search. score: 0 to 1, the share of the best possible score. text_number: number of the
-- text if several texts claim the id (contested), else null.
create function search_fulltext(
    query_text text, match_count integer default 10, in_lists text[] default null,
    sent_after timestamptz default null, sent_before timestamptz default null)
returns table (
    message_id text, lists text[], thread_id text, subject text, from_name text,
    sent_at timestamptz, score float8, text_number integer)
language sql stable security invoker set search_path = {path} as $$
select f.message_id, lists_of(f.message_id, f.text_number),
       case when f.text_number > 1 then null else published_thread(f.thread_id) end, m.subject, m.from_name,
       m.sent_at, f.score, f.text_number
  from fulltext_messages(query_text, in_lists, sent_after, sent_before) f
  join messages m using (list, month, message_id, variant)
 order by f.rank
 limit checked_count(match_count)
$$;

-- Statements that install the functions of sql/functions/, and the bodies inserted into these:
-- question, frequencies, fulltext. Used by sql_functions.py.

-- name: schemas
-- Schema of the tables, and schema of pgvector (null if it is not installed).
select current_schema(),
       (select n.nspname
          from pg_extension e
          join pg_namespace n on n.oid = e.extnamespace
         where e.extname = 'vector')

-- name: can_read_all
-- True if a role can read all mail without a grant; no row if the role does not exist.
select rolsuper or rolbypassrls or pg_has_role(rolname, current_user, 'member')
  from pg_roles
 where rolname = %(role)s

-- name: give_up_early
-- A session that waits for a table lock blocks all later ones. The limit is longer than
-- deadlock_timeout (1 s), after which PostgreSQL cancels a conflicting autovacuum.
set local lock_timeout = '1500ms'

-- name: in_use
-- Transactions that have used one of our tables, oldest first.
select a.pid, coalesce(nullif(a.application_name, ''), a.backend_type, 'another user''s') as name,
       coalesce(date_trunc('second', clock_timestamp() - a.xact_start)::text, '?') as since,
       string_agg(distinct c.relname, ', ' order by c.relname) as tables
  from pg_locks l
  join pg_class c on c.oid = l.relation
  join pg_stat_activity a using (pid)
 where l.granted and a.datname = current_database() and a.pid <> pg_backend_pid()
   and c.relkind in ('r', 'v')
   and c.relnamespace in (to_regnamespace(quote_ident(current_schema())),
                          to_regnamespace('mail_public'))
 group by a.pid, name, a.xact_start
 order by a.xact_start
 limit 3

-- name: public_schema
-- Schema of the tables that mail_public shows, and whether it is ours; no row if it shows none.
select n.nspname, n.nspname = current_schema()
  from pg_rewrite r
  join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
  join pg_class t on d.refclassid = 'pg_class'::regclass and t.oid = d.refobjid
  join pg_namespace n on n.oid = t.relnamespace
 where r.ev_class = to_regclass('mail_public.messages') and t.relname = 'messages'
   and t.oid <> r.ev_class
 limit 1

-- name: question
-- A query in the lexemes of one language. narrow: all words, or one of the identifiers (exact
-- lexemes). required: the phrases, and none of the excluded words. phrased: whether there are phrases.
-- No row if no lexeme remains to search for or to exclude.
select (p.words || p.exact)::text as narrow,
       case when p.phrases = '' and p.unwanted = '' then ''
            else concat_ws(' & ', '(' || nullif(p.phrases, '') || ')',
                           '!(' || nullif(p.unwanted, '') || ')') end as required,
       p.phrases <> '' as phrased, p.lexemes, p.pieces
  from (select coalesce((select string_agg('(' || any_of(w.lexemes) || ')', ' & ')
                           from (select word_lexemes(%(language)s, x) as lexemes
                                   from unnest(%(words)s) as x) w
                          where w.lexemes <> '{}'), '')::tsquery as words,
               coalesce((select string_agg('(' || q.one || ')',
                                           case when %(either)s then ' | ' else ' & ' end)
                           from (select phrase_of(%(language)s, x) as one
                                   from unnest(%(phrases)s) as x) q
                          where q.one <> ''), '') as phrases,
               coalesce((select string_agg('(' || q.one || ')', ' | ')
                           from (select phrase_of(%(language)s, x) as one
                                   from unnest(%(unwanted)s) as x) q
                          where q.one <> ''), '') as unwanted,
               array(select distinct l from unnest(%(words)s) as x,
                            unnest(word_lexemes(%(language)s, x)) as l) as lexemes,
               array(select distinct l from unnest(%(pieces)s) as x,
                            unnest(case when x ~ '^@' then array[x]
                                        else word_lexemes(%(language)s, x) end) as l) as pieces,
               %(exact)s::tsquery as exact) p
 where numnode(p.words || p.exact) > 0 or p.unwanted <> ''

-- name: frequencies
-- Number of messages, and of messages with each lexeme. The statistics of the last ANALYZE have the
-- 1,000 most common lexemes; others are counted up to a limit.
with corpus as materialized (
    select case when reltuples > 0 then reltuples::bigint
                else (select count(*) from messages) end as messages
      from pg_class where oid = 'messages'::regclass),
known as materialized (
    select e.lexeme, e.share
      from pg_stats s
     cross join lateral unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs)
           as e (lexeme, share)
     where s.schemaname = current_schema() and s.tablename = 'messages' and s.attname = 'search'
       and e.lexeme = any(%(lexemes)s))
select corpus.messages,
       coalesce((select round(known.share * corpus.messages)::bigint
                   from known where known.lexeme = l.lexeme),
                (select count(*)
                   from (select from messages m where m.search @@ l.query limit %(most)s) c))
  from corpus, unnest(%(lexemes)s::text[], %(queries)s::tsquery[]) with ordinality
       as l (lexeme, query, place)
 order by l.place

-- name: fulltext
-- BM25 (Robertson, Zaragoza 2009) over the newest matching messages. ts_rank of one lexeme with all
-- weights 1 is (1 + 1/4 + ... + 1/n^2) / (pi^2 / 6) for n occurrences, so n is about
-- 1 / (pi^2 / 6 - sum) - 1/2. Positions of weight A are in the subject. An identifier without a
-- position counts once. || '' unpacks the tsvector once instead of once per lexeme.
with terms as materialized (
    select * from unnest(%(queries)s::tsquery[], %(weights)s::float8[]) as t (query, weight)),
matching as materialized (
    select m.message_id, m.list, m.month, m.variant, m.search
      from messages m
     where m.search @@ %(question)s::tsquery
       and m.list = any(%(lists)s)
       and m.sent_at >= %(after)s::timestamptz
       and m.sent_at < %(before)s::timestamptz
     order by m.sent_at desc, m.message_id
     limit %(candidates)s)
select best.message_id, best.list, best.month, best.variant, t.thread_id, best.score, best.covered
  from (select c.message_id, c.list, c.month, c.variant, scored.score, scored.covered
          from matching c
         cross join lateral (select c.search || '' as search, length(c.search) as size offset 0) doc
         cross join lateral (
               select sum(weight * tf * %(k1_1)s
                          / (tf + %(k1)s * (1 - %(b)s + %(b)s * doc.size / %(pivot)s))) as score,
                      sum(weight) as covered
                 from (select weight,
                              round(1 / (1.64493407 - least(everywhere, 1.6449)) - 0.5)
                              + (%(heading)s - 1)
                              * round(1 / (1.64493407 - least(in_subject, 1.6449)) - 0.5) as tf
                         from (select weight,
                                      1.64493407 * ts_rank('{1,1,1,1}', doc.search, query)
                                      as everywhere,
                                      1.64493407 * ts_rank('{0,0,0,1}', doc.search, query)
                                      as in_subject
                                 from terms offset 0) ranks
                        where everywhere > 0 offset 0) counts) scored
         where scored.score is not null
         order by scored.score desc, c.message_id, c.list, c.month, c.variant
         limit %(most)s) best
  left join threads t on t.message_id = best.message_id
 order by best.score desc, best.message_id, best.list, best.month, best.variant

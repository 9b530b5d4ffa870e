-- Take a query apart as search/query.py and text/identifiers.py do. Names in diffs (file headers,
-- hunks) are not searched for: a query is not a diff. Functions with a backslash in a literal set
-- standard_conforming_strings, which is otherwise that of the calling session.

-- A text in which letters of scripts without blanks between words become their overlapping pairs,
-- as in the text that is indexed: see text/letters.py.
create function pair_letters(content text) returns text
language sql immutable security invoker
set search_path = {path} set standard_conforming_strings = on as $$
select case when octet_length(content) = length(content) then content else (
    select coalesce(string_agg(coalesce(p.pairs, r.run[2]), ' ' order by r.place), '')
      from regexp_matches(content, '((?:{letter})+)|((?:(?!{letter}).)+)', 'g')
           with ordinality as r (run, place)
     cross join lateral (
           select string_agg(l.letter || coalesce(l.next, ''), ' ' order by l.place) as pairs
             from (select f[1] as letter, lead(f[1]) over (order by n) as next, n as place
                     from regexp_matches(r.run[1], '{letter}', 'g')
                          with ordinality as m (f, n)) l
            where l.next is not null or l.place = 1) p) end
$$;

-- Identifiers in a text, which stemming would destroy, and their pieces: in lower case, sorted,
-- without duplicates.
create function query_identifiers(query text) returns text[]
language sql immutable security invoker
set search_path = {path} set standard_conforming_strings = on as $$
with plain as (
    -- without addresses and hosts
    select regexp_replace(
               pair_letters(query),
               '(?<![\w.+-])[\w.+-]+@[\w.-]*|\m\w+://[^\s/<>"]*', ' ', 'g') as text),
found as (
    -- commits
    select f[1] as name
      from plain, regexp_matches(text, '(?<![\w-])[0-9a-f]{7,40}(?![\w-])', 'g') as f
     where f[1] !~ '^\d+$' and f[1] !~ '^[a-f]+$'
    union all
    -- SQLSTATEs
    select f[1]
      from plain, regexp_matches(
           text, '(?<![\w.,:/-])(?:{sqlstates})[0-9A-Z]{3}(?![\w/-]|[.,:]\d)', 'g') as f
     where f[1] !~ '^\d\d000'
    union all
    -- a.b, a/b.c, a::b, a_b
    select p.name
      from plain,
           regexp_matches(
               text,
               '(?<![\w$+-])(?=[\w$+-]*[._/:])[\w$+-]+(?:(?:\.|/|::)[\w$+-]+)*', 'g') as f
     cross join lateral (select btrim(f[1], './:+-$') as word) w
     cross join lateral (select regexp_replace(word, '^.*/', '') as last) l
     cross join lateral (
           select array(select part from regexp_split_to_table(last, '[._:]+') as part
                         where part ~ '[[:alpha:]]') as parts) s
     cross join lateral (
           values (word), (last), (regexp_replace(last, '\.[^.]*$', ''))
           union all
           select piece from regexp_split_to_table(last, '\.|::') as piece
            where length(piece) >= 3 and piece ~ '[[:alpha:]]'
           union all
           select part from unnest(parts) as part where length(part) >= 3) p (name)
     where parts <> '{}' and word <> all(parts) and word !~ '^_[[:alnum:]]+_$'
       and (word ~ '[/_]' or exists (select from unnest(parts) as part where length(part) >= 2)))
select coalesce(array_agg(name order by name collate "C"), '{}')
  from (select distinct lower(name) as name
          from found
         where length(name) between 2 and 200) names
$$;

-- A tsquery for any of these lexemes, as match_any in search/lexemes.py.
create function any_of(lexemes text[]) returns text
language sql immutable security invoker
set search_path = {path} set standard_conforming_strings = on as $$
select coalesce(
           string_agg('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''', ' | '
                      order by place), '')
  from unnest(lexemes) with ordinality as l (lexeme, place)
$$;

-- The parts of a query: see ParsedQuery in search/query.py.
create function query_words(
    query text,
    out wanted text, out plain text, out phrases text, out unwanted text,
    out identifiers text[], out parts text[])
language plpgsql immutable security invoker
set search_path = {path} set standard_conforming_strings = on as $$
declare
    minus constant text := '(?<!\S)-("[^"]*"|\w[\w{marks}]\S*)';
    names text[];
    name text;
begin
    query := translate(query, '<>', '  '); -- or it would be tags, which have no lexemes
    -- A word that is pairs is a phrase of them.
    unwanted := coalesce((select string_agg(case when e.pairs = e.word or e.word like '"%' then e.pairs
                                                 else '"' || e.pairs || '"' end, ' or ')
                            from regexp_matches(query, minus, 'g') as f
                           cross join lateral (select replace(f[1], '-', ' ') as word) w
                           cross join lateral (select w.word, pair_letters(w.word) as pairs) e), '');
    wanted := regexp_replace(query, minus, ' ', 'g');
    names := query_identifiers(wanted);
    parts := array(select distinct part collate "C"
                     from unnest(names) as n (name), unnest(query_identifiers(n.name)) as part
                    where part <> n.name and part <> regexp_replace(n.name, '^.*/', '')
                    order by 1);
    identifiers := array(select n.name from unnest(names) with ordinality as n (name, place)
                          where n.name <> all(parts) order by place);
    plain := wanted;
    for name in select n from unnest(identifiers) as n order by length(n) desc, n collate "C" loop
        plain := regexp_replace(plain, regexp_replace(name, '(\W)', '\\\1', 'g'), ' ', 'gi');
    end loop;
    plain := pair_letters(plain);
    phrases := coalesce((
        select string_agg(pair_letters(f[1]), case when wanted ~* '(?<!\S)or(?!\S)' then ' or ' else ' ' end)
          from regexp_matches(wanted, '"[^"]*"', 'g') as f), '');
    wanted := pair_letters(regexp_replace(wanted, '(?<![[:alnum:]])-+', ' ', 'g'));
end $$;

-- The query in the stems of each language of these lists: see LanguageQuery in search/query.py.
create function query_questions(query text, in_lists text[])
returns table (
    language text, lists text[], narrow text, required text, phrased boolean, lexemes text[],
    pieces text[])
language plpgsql stable security invoker
set search_path = {path} set client_min_messages = warning as $$
#variable_conflict use_column
declare
    given record;
    read record;
begin
    if query is null or btrim(query) = '' or length(query) > {max_query} then
        raise exception 'query_text has % characters: allowed are 1 to {max_query}',
              coalesce(length(btrim(query)), 0) using errcode = 'invalid_parameter_value';
    end if;
    for given in
        select l.language, l.lists, w.wanted as words, w.phrases, w.unwanted, w.plain,
               array_to_string(w.identifiers, ' ') as names, any_of(w.identifiers) as exact
          from query_words(query) as w,
               (select l.language, array_agg(l.list order by l.list) as lists
                  from list_languages l where l.list = any(in_lists) group by l.language) l
         order by l.language
    loop
        for read in
{question}
        loop
            language := given.language;
            lists := given.lists;
            narrow := read.narrow;
            required := read.required;
            phrased := read.phrased;
            lexemes := read.lexemes;
            pieces := read.pieces;
            return next;
        end loop;
    end loop;
end $$;

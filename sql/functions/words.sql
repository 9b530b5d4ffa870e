-- Parse a query as text/words.py, text/identifiers.py and search/lexemes.py do, with patterns made from
-- theirs. Parts of camel case are not used, and names in diffs (file headers, hunks) neither, because
-- a query is not a diff. Functions with a backslash in a literal set standard_conforming_strings;
-- the calling session might have it off.

-- Returns a text without invisible characters, with signs and digits in ASCII.
create function clean_text(content text) returns text
language sql immutable security invoker
set search_path = {path} set standard_conforming_strings = on as $$
select translate(regexp_replace(content, '{unseen}', '', 'g'), {wide_signs}, {ascii_signs})
$$;

-- Returns a run of letters in lower case, normalized (NFKC).
create function normal_form(run text) returns text
language sql immutable security invoker
set search_path = {path} set standard_conforming_strings = on as $$
select case when octet_length(run) = length(run) then lower(run)
            else normalize(lower(normalize(run, nfkc)), nfkc) end
$$;

-- Words of a clean text in order. Scripts without spaces yield overlapping pairs of letters.
create function cut_words(content text)
returns table (place bigint, word text, in_address boolean)
language sql immutable security invoker
set search_path = {path} set standard_conforming_strings = on as $$
select row_number() over (order by r.place, w.n), w.word, r.run[1] is not null
  from regexp_matches(content, '({address})|((?:{letter})+)|({spaced})', 'g')
       with ordinality as r (run, place)
 cross join lateral (
       select normal_form(a.m[1]) as word, a.n
         from regexp_matches(r.run[1], '{spaced}', 'g') with ordinality as a (m, n)
       union all
       select case when l.pair ~ '[{widths}]' then normalize(l.pair, nfkc) else l.pair end, l.n
         from (select f.m[1] || coalesce(lead(f.m[1]) over (order by f.n), '') as pair, f.n,
                      lead(f.m[1]) over (order by f.n) is null and f.n > 1 as is_last
                 from regexp_matches(r.run[2], '{letter}', 'g') with ordinality as f (m, n)) l
        where not l.is_last
       union all
       select s.m[1], s.n
         from regexp_matches(normal_form(r.run[3]), '{spaced}', 'g') with ordinality as s (m, n)
        where length(r.run[3]) <= {max_length}) w
$$;

-- Names in a clean text: as written (raw), as a lexeme (whole), lexemes of their parts. is_prose: the
-- name is words joined as in prose. is_signed: without its signs the name is another word.
create function query_names(content text)
returns table (raw text, whole text, parts text[], is_prose boolean, is_signed boolean)
language sql immutable security invoker
set search_path = {path} set standard_conforming_strings = on as $$
with texts as (
    select regexp_replace(content, '{address}', ' ', 'g') as no_address),
plain as (
    select regexp_replace(no_address, '{url}', ' ', 'g') as text from texts)
select f[1], '@' || lower(rtrim(f[1], '.-_')), '{}'::text[], false, false
  from regexp_matches(content, '({address})', 'g') as f
union all
select f[1], u.host || u.path,
       case when u.host ~ '[.]' and u.path <> '' then array[u.host] else '{}' end, false, false
  from texts, regexp_matches(no_address, '({url})', 'g') as f
 cross join lateral (
       select lower(rtrim(f[2], '.,;:!?)''')) as host, lower(rtrim(f[3], '.,;:!?)''/')) as path) u
 where u.host ~ '[.]' or u.path <> ''
union all
select f[1], f[1], array[left(f[1], 7) || '.'], false, false
  from plain, regexp_matches(
       text, '((?<![\w-])[0-9a-f]{7,40}(?!(?![{unspaced}])\w|-))', 'g') as f
 where f[1] !~ '^\d+$' and f[1] !~ '^[a-f]+$'
union all
select f[1], lower(f[1]), '{}', false, false
  from plain, regexp_matches(
       text, '((?<![\w.,:/-])(?:{sqlstates})[0-9A-Z]{3}(?!(?![{unspaced}])\w|[/-]|[.,:]\d))', 'g')
       as f
 where f[1] !~ '^\d\d000'
union all
select f[1], f[1], array(
           select array_to_string(n.numbers[1:i], '.') || '.'
             from generate_series(2, cardinality(n.numbers)) as i), false, false
  from plain, regexp_matches(text, '((?<![0-9.]){version}(?![[:alnum:]]|\.[0-9]))', 'g') as f
 cross join lateral (select string_to_array(f[1], '.') as numbers) n
union all
select f[1], f[1] || '.', array(
           select array_to_string(n.numbers[1:i], '.') || '.'
             from generate_series(2, cardinality(n.numbers) - 1) as i), false, false
  from plain, regexp_matches(text, '((?<![0-9.]){version}(?=[[:alpha:]]))', 'g') as f
 cross join lateral (select string_to_array(f[1], '.') as numbers) n
union all
select f[1], lower(f[1]), case when f[1] <> f[2] then array[lower(f[2])] else '{}' end, false, true
  from plain, regexp_matches(text, '((?<!{alnum}){signed})', 'g') as f
union all
select f[1], lower(f[1]), '{}', false, f[1] ~ '^{capital}$'
  from plain, regexp_matches(text, '({leading})', 'g') as f
union all
select f[1], w.word, array(
           select distinct p.part
             from (select unnest(w.components) as part
                   union all select regexp_replace(w.last, '\.[^.]*$', '')
                   union all select regexp_split_to_table(c, '\.|::') from unnest(w.components) as c
                   union all select w.components[cardinality(w.components) - 1] || '/' || w.last
                              where cardinality(w.components) > 2) p
            where p.part ~ '[._:/$+-]' and p.part <> w.word and btrim(p.part, '_./:+-$') <> ''),
       w.word ~ '^[[:alnum:]]+((-[[:alnum:]]+)+|/[[:alnum:]]+)$', false
  from plain, regexp_matches(
       text, '((?<!{sign})(?={sign}*(?:[_-]|(?:\.|/|::){sign})){sign}+(?:(?:\.|/|::){sign}+)*)', 'g') as f
 cross join lateral (
       select b.word, string_to_array(b.word, '/') as components,
              regexp_replace(b.word, '^.*/', '') as last,
              array(select x from regexp_split_to_table(b.word, '[._:/$+-]+') as x
                     where x ~ '[[:alpha:]]') as pieces
         from (select lower(btrim(f[1], './:+-$')) as word) b) w
 where w.pieces <> '{}' and w.word <> all(w.pieces) and w.word !~ '^_[[:alnum:]]+_$'
   and length(w.word) <= 200
   and (w.word ~ '[/_]' or exists (select from unnest(w.pieces) as x where length(x) >= 2))
   and (w.word !~ '--' or w.word ~ '[.]|::')
$$;

-- Returns a tsquery for any of some lexemes, as match_any in search/lexemes.py.
create function any_of(lexemes text[]) returns text
language sql immutable security invoker
set search_path = {path} set standard_conforming_strings = on as $$
select coalesce(
           string_agg('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''', ' | '
                      order by place), '')
  from unnest(lexemes) with ordinality as l (lexeme, place)
$$;

-- Lexemes of a word; none for a stop word.
create function word_lexemes(language text, word text) returns text[]
language sql stable security invoker
set search_path = {path} set standard_conforming_strings = on as $$
select case when word ~ '\d' or word ~ '^[{unspaced}]' then array[word]
            else (select s.lexemes from (
{stems}
            ) s (language, word, lexemes)) end
$$;

-- Returns a text as a phrase in a tsquery, as match_text in search/lexemes.py; empty for a single stop
-- word.
create function phrase_of(language text, content text) returns text
language sql stable security invoker
set search_path = {path} set standard_conforming_strings = on as $$
select case
       when content ~ '^\W*[vV]?{version}\W*$' then
            any_of(array[substring(content from '{version}') || '.'])
       when content ~ '^[^\w.]*({signed}|{capital})[^\w+#]*$' then
            any_of(array[lower(substring(content from '^[^\w.]*({signed}|{capital})'))])
       when content ~ '^\W*(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\W*$' then
            (select any_of(array_agg(left(i.id, n))) || ' | ''' || i.id || ''':*'
               from (select substring(content from '[0-9a-f]+') as id) i
              cross join lateral generate_series(7, length(i.id)) as n
              group by i.id)
       when count(*) = 0 or (count(*) = 1 and bool_and(w.lexemes = '{}')) then ''
       else '(' || string_agg('(' || any_of(case when w.in_address then array['@' || w.word]
                                          when w.lexemes = '{}' then array['=' || w.word]
                                          else w.lexemes end) || ')', ' <-> ' order by w.place)
            || coalesce((select ' | ' || any_of(array_agg(n.whole))
                           from query_names(content) n
                          where n.raw = btrim(content) and n.whole !~ '^@'
                         having count(*) > 0), '') || ')'
            || coalesce((select string_agg(' & ' || any_of(array[n.whole]), '')
                           from query_names(content) n where n.is_signed), '') end
  from (select c.*, word_lexemes(language, c.word) as lexemes from cut_words(content) c) w
$$;

-- Parts of a query: its phrases, its excluded texts, and the words and names of the rest. See
-- ParsedQuery in search/query.py.
create function query_words(
    query text,
    out phrases text[], out unwanted text[], out either boolean, out words text[],
    out identifiers text[], out parts text[], out pieces text[])
language plpgsql immutable security invoker
set search_path = {path} set standard_conforming_strings = on as $$
declare
    -- An exclusion, as in search/language/grammar.py: a dash and two or more characters; not an option,
    -- an arrow, or part of a tag such as [PATCH -next].
    minus constant text := '(?<!\S)(?:(?<!\[[^][():*"\\]*)|(?![^][():*"\\]*\]))-("[^"]*"|(?![-=>|*(])(?=\S*\w)[^\s"]+[^\s").,;:!?]\S*)';
    wanted text;
    plain text;
    one record;
begin
    query := clean_text(query);
    unwanted := array(select btrim(f[1], '"') from regexp_matches(query, minus, 'g') as f);
    wanted := regexp_replace(query, minus, ' ', 'g');
    phrases := array(select btrim(f[1], '"') from regexp_matches(wanted, '("[^"]*")', 'g') as f);
    either := wanted ~* '(?<!\S)or(?!\S)';
    wanted := regexp_replace(wanted, '(?<!\S)[oO][rR](?!\S)', ' ', 'g');
    select coalesce(array_agg(distinct n.whole), '{}'), coalesce(array_agg(distinct f.file)
               filter (where f.file = any(n.parts)), '{}')
      into identifiers, parts
      from query_names(wanted) n
     cross join lateral (select regexp_replace(n.whole, '^.*/', '') as file) f;
    identifiers := identifiers || parts;
    parts := array(select distinct p from query_names(wanted) n, unnest(n.parts) as p
                    where p <> all(identifiers));
    plain := wanted;
    pieces := '{}';
    for one in select * from query_names(wanted) where not is_prose order by length(raw) desc loop
        pieces := pieces || array(select case when in_address then '@' || word else word end
                                    from cut_words(one.raw)
                                   where word !~ '^\d+$' and not one.is_signed);
        plain := replace(plain, one.raw, ' ');
    end loop;
    words := array(select word from cut_words(plain) group by word order by min(place));
    pieces := array(select distinct p from unnest(pieces) as p where p <> all(words));
end $$;

-- The query in the stems of each language of these lists. See LanguageQuery in search/query.py.
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
    query := checked_query(query);
    for given in
        select l.language, l.lists, w.phrases, w.unwanted, w.either, w.words, w.pieces,
               any_of(w.identifiers) as exact
          from query_words(query) as w,
               (select l.language, array_agg(l.list order by l.list) as lists
                  from lists l where l.list = any(in_lists) group by l.language) l
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

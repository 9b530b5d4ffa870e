-- Drops the functions of an earlier installation, whatever their arguments. Functions of others with
-- these names stay: only ours set a search path that ends in pg_temp.

do $$
declare
    one regprocedure;
begin
    for one in
        select oid from pg_proc
         where pronamespace = to_regnamespace(quote_ident(current_schema()))
           and proname in (
               'search_hybrid', 'checked_weight', 'search_messages_with_chunks', 'search_semantic',
               'checked_threshold', 'semantic_chunks', 'nearest_chunks', 'live_vectors',
               'search_fulltext', 'fulltext_messages', 'fulltext_candidates', 'fulltext_choice',
               'fulltext_terms', 'query_questions', 'query_words', 'phrase_of', 'word_lexemes', 'any_of', 'query_names',
               'cut_words', 'normal_form', 'clean_text', 'query_identifiers', 'pair_letters', 'checked_count', 'checked_query', 'searched_lists', 'text_of', 'lists_of', 'published_lists', 'published_thread')
           and exists (select from unnest(proconfig) as setting
                        where setting like 'search_path=%, pg_temp')
    loop
        execute format('drop routine %s', one);
    end loop;
end $$;

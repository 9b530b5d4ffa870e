-- Drop what an earlier installation created, whatever its arguments were.

drop view if exists mail_public.messages, mail_public.threads;
drop routine if exists
     mail_public.search_semantic, mail_public.search_fulltext, mail_public.search_hybrid,
     mail_public.search_messages_with_chunks, mail_public.hide_addresses;
drop routine if exists
     search_hybrid, checked_weight, search_messages_with_chunks, search_semantic, semantic_chunks,
     nearest_chunks, live_vectors, search_fulltext, fulltext_messages, fulltext_candidates,
     fulltext_choice, fulltext_terms, query_questions, query_words, any_of, query_identifiers,
     checked_count, searched_lists;

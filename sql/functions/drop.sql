-- Drop what an earlier installation created, whatever its arguments were.

drop routine if exists
     search_hybrid, checked_weight, search_messages_with_chunks, search_semantic,
     checked_threshold, semantic_chunks, nearest_chunks, live_vectors,
     search_fulltext, fulltext_messages, fulltext_candidates, fulltext_choice,
     fulltext_terms, query_questions, query_words, any_of, query_identifiers, pair_letters,
     checked_count, searched_lists;

-- Ends public read access, unless it belongs to another installation in this database.

drop view if exists mail_public.messages, mail_public.threads;
drop routine if exists
     mail_public.search_semantic, mail_public.search_fulltext, mail_public.search_hybrid,
     mail_public.search_messages_with_chunks, mail_public.hide_chunk,
     mail_public.thread_of, mail_public.text_of,
     mail_public.hide_addresses_between, mail_public.hide_addresses, mail_public.address_pattern;

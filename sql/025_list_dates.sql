-- The messages of a list by date: from one to the next without reading its month.

create index messages_list_date on messages (list, sent_at, message_id);

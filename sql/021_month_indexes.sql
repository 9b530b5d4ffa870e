-- What is looked up by month or by a name in references is found without reading every row.

-- A month of the manifests of all indexes, as well as of one.
drop index vectors_archive;
create index vectors_archive on vectors (list, month, index_name);
drop index words_archive;
create index words_archive on words (list, month, index_name);

-- Who names a forgotten message: 2 % of the space of the table.
create index messages_references on messages using gin ((refs || in_reply_to));

-- Changes are taken in portions, with all of the threads that a portion touches.
create index thread_changes_message_id on thread_changes (message_id);

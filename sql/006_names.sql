-- Two names that said something else: `removed` beside `removals`, and an object that is a key.

alter table removed rename to removed_messages;
alter table mbox_archives rename column object to object_key;

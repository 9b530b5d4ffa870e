-- Threads that are built anew only where messages changed, ids that lead to a thread without
-- standing in it, and what was forgotten.

-- Ids that lead to a thread without standing in it. `message_id` is a message of the thread.
create table thread_aliases (
    id          text primary key,
    message_id  text not null,
    -- a message of the thread names it; else it stood in the thread before
    named       boolean not null
);

create index thread_aliases_message_id on thread_aliases (message_id);

-- Messages that came, went or refer to others than before since threads was built. Filled by
-- triggers, so that nobody who writes messages can forget it.
create table thread_changes (
    message_id  text not null
);

create function note_thread_changes() returns trigger language plpgsql as $$
begin
    insert into thread_changes select distinct message_id from changed;
    return null;
end $$;

create function note_thread_updates() returns trigger language plpgsql as $$
begin
    insert into thread_changes
    select distinct n.message_id
      from changed n
      join unchanged o using (list, month, message_id, variant)
     where (n.refs, n.in_reply_to, n.sent_at)
           is distinct from (o.refs, o.in_reply_to, o.sent_at);
    return null;
end $$;

create trigger messages_inserted after insert on messages
referencing new table as changed
for each statement execute function note_thread_changes();

create trigger messages_deleted after delete on messages
referencing old table as changed
for each statement execute function note_thread_changes();

create trigger messages_updated after update on messages
referencing old table as unchanged new table as changed
for each statement execute function note_thread_updates();

-- What must stay out, as digests: the list must not say what was forgotten.
create table removals (
    digest      bytea primary key,
    kind        text not null check (kind in ('message', 'sender')),
    reason      text not null,
    removed_by  text not null,
    removed_at  timestamptz not null default now()
);

-- The messages that a month's archive holds and that were left out, as quarantine holds those
-- that cannot be read: found = stored + duplicates + quarantined + removed.
create table removed (
    list            text not null,
    month           text not null,
    ordinal         integer not null,
    -- the removal that keeps it out
    removal         bytea not null,
    -- of its id, where other mail must not name it: not where it was only the second content
    -- under it, nor where the removal was taken back
    message_digest  bytea,
    -- what the keys of its chunks begin with, in every index
    key_prefix      text not null,
    primary key (list, month, ordinal)
);

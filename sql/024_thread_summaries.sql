-- Summaries of threads, and which of them have to be made again.

-- One row a thread. What it says goes with the messages that it was made of: see the triggers.
create table thread_summaries (
    thread_id      text primary key,
    maker          text not null,
    verbatim       boolean not null,
    content_hash   bytea not null,
    messages       integer not null,
    first_sent_at  timestamptz not null,
    last_sent_at   timestamptz not null,
    participants   text[] not null,
    patches        text[] not null,
    sentences      jsonb not null,
    made_at        timestamptz not null default now()
);
comment on table thread_summaries is
    'One row per thread: what it is about, in sentences that each name the message they stand on.';
comment on column thread_summaries.thread_id is 'The thread, as in threads.';
comment on column thread_summaries.maker is
    'Fingerprint of what made it: rules and their version, or a chat model.';
comment on column thread_summaries.verbatim is
    'True if the sentences are those of the messages, false if a model wrote them.';
comment on column thread_summaries.content_hash is
    'Hash of all that it was made of, as thread_contents had it.';
comment on column thread_summaries.messages is 'Number of archived messages it was made of.';
comment on column thread_summaries.first_sent_at is 'When the earliest message was sent.';
comment on column thread_summaries.last_sent_at is 'When the latest message was sent.';
comment on column thread_summaries.participants is
    'Names of those who wrote, in the order of their first message.';
comment on column thread_summaries.patches is 'Message-IDs of messages that carry a patch.';
comment on column thread_summaries.sentences is
    'Sentences in order: text, part (question, discussion, outcome), the message that carries it, '
    'start and end in characters of its body_text, and other messages that carry it.';
comment on column thread_summaries.made_at is 'When it was made.';

-- Threads whose summaries have to be made or looked at again. Filled by triggers, so that nobody
-- who writes messages or threads can forget it. A thread may stand here more than once: parallel
-- loads would wait for each other at a key.
create table summary_changes (
    thread_id  text not null,
    noted_at   timestamptz not null default now()
);
comment on table summary_changes is
    'Threads that have changed since they were summarized. Filled by triggers on messages and '
    'threads.';
comment on column summary_changes.thread_id is 'The thread, as in threads.';
comment on column summary_changes.noted_at is 'When the transaction that changed it began.';
create index summary_changes_thread_id on summary_changes (thread_id);
-- as of thread_changes: statistics of an emptied table would name what was forgotten
alter table summary_changes alter thread_id set statistics 0;

-- What a summary is made of: the archived messages of a thread, the earliest copy of each.
create view thread_contents as
select t.thread_id, count(*)::integer as messages, sum(m.characters)::bigint as characters,
       sha256(convert_to(string_agg(m.content, '' order by t.position), 'UTF8')) as content_hash
  from threads t
 cross join lateral (
       select length(c.body_text) as characters,
              md5(jsonb_build_array(
                  c.message_id, t.parent_id, c.from_name, c.from_email,
                  extract(epoch from c.sent_at), c.subject, c.body_text, c.segments)::text)
                  as content
         from messages c
        where c.message_id = t.message_id
        order by c.variant, c.sent_at, c.list, c.month
        limit 1) m
 group by t.thread_id;
comment on view thread_contents is
    'Of each thread with an archived message: how many it has, the length of their texts, and a hash '
    'of all that a summary is made of.';

create function note_summary_messages() returns trigger language plpgsql as $$
begin
    insert into summary_changes (thread_id)
    select distinct t.thread_id from changed c join threads t using (message_id);
    return null;
end $$;
comment on function note_summary_messages() is
    'Notes the threads of messages that came: their summaries stay until they are made again.';

create function drop_summaries_of_messages() returns trigger language plpgsql as $$
begin
    with touched as materialized (
        select distinct t.thread_id
          from unchanged o
          join threads t using (message_id)
         where not exists (
               select from messages m
                where (m.list, m.month, m.message_id, m.variant)
                      = (o.list, o.month, o.message_id, o.variant)
                  and (m.from_name, m.from_email, m.sent_at, m.subject, m.body_text, m.segments)
                      is not distinct from (o.from_name, o.from_email, o.sent_at, o.subject,
                                            o.body_text, o.segments))),
    dropped as (
        delete from thread_summaries s using touched where s.thread_id = touched.thread_id)
    insert into summary_changes (thread_id) select thread_id from touched;
    return null;
end $$;
comment on function drop_summaries_of_messages() is
    'Deletes the summaries of threads of which a message went or says something else, at once.';

create function note_summary_threads() returns trigger language plpgsql as $$
begin
    insert into summary_changes (thread_id) select distinct thread_id from changed;
    return null;
end $$;
comment on function note_summary_threads() is 'Notes threads that grew or are in another order.';

create function drop_summaries_of_threads() returns trigger language plpgsql as $$
begin
    with touched as materialized (
        select distinct o.thread_id
          from unchanged o
         where not exists (
               select from threads t
                where (t.message_id, t.thread_id) = (o.message_id, o.thread_id))),
    emptied as materialized (
        select thread_id from touched o
         where not exists (select from threads t where t.thread_id = o.thread_id)),
    dropped as (
        delete from thread_summaries s using touched where s.thread_id = touched.thread_id),
    forgotten as (
        delete from summary_changes c using emptied where c.thread_id = emptied.thread_id)
    insert into summary_changes (thread_id)
    select thread_id from touched except select thread_id from emptied;
    return null;
end $$;
comment on function drop_summaries_of_threads() is
    'Deletes the summaries of threads that a message left, at once: so a message of which a summary '
    'was made is in its thread for as long as there is the summary.';

create trigger summaries_messages_inserted after insert on messages
referencing new table as changed
for each statement execute function note_summary_messages();

create trigger summaries_messages_updated after update on messages
referencing old table as unchanged
for each statement execute function drop_summaries_of_messages();

create trigger summaries_messages_deleted after delete on messages
referencing old table as unchanged
for each statement execute function drop_summaries_of_messages();

create trigger summaries_threads_inserted after insert on threads
referencing new table as changed
for each statement execute function note_summary_threads();

create trigger summaries_threads_updated after update on threads
referencing new table as changed
for each statement execute function note_summary_threads();

create trigger summaries_threads_replaced after update on threads
referencing old table as unchanged
for each statement execute function drop_summaries_of_threads();

create trigger summaries_threads_deleted after delete on threads
referencing old table as unchanged
for each statement execute function drop_summaries_of_threads();

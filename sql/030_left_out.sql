-- Mail of forgotten senders that an archive loses is kept in mind as if it had been cut out of it.

create or replace view left_out with (security_invoker = true) as
select list, month, removal, message_digest, key_prefix from removed_messages
union
select list, month, removal, message_digest, key_prefix from cut_messages;

comment on table cut_messages is
    'Messages that the stored archive of the month has not, but had: cut out because of an entry in '
    'removals, or lost by the source, before or after they were forgotten.';

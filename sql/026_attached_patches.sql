-- A summary links to the messages that carry a patch, attached ones too: they are part of what it is
-- made of. Where no patch is attached, the hash is what it was, so nothing else is made again.

create or replace view thread_contents as
select t.thread_id, count(*)::integer as messages, sum(m.characters)::bigint as characters,
       sha256(convert_to(string_agg(m.content, '' order by t.position), 'UTF8')) as content_hash
  from threads t
 cross join lateral (
       select length(c.body_text) as characters,
              md5(jsonb_build_array(
                  c.message_id, t.parent_id, c.from_name, c.from_email,
                  extract(epoch from c.sent_at), c.subject, c.body_text, c.segments)::text)
              || case when c.attachments @> '[{"is_patch": true}]' then 'patch attached' else '' end
                  as content
         from messages c
        where c.message_id = t.message_id
        order by c.variant, c.sent_at, c.list, c.month
        limit 1) m
 group by t.thread_id;

create or replace function drop_summaries_of_messages() returns trigger language plpgsql as $$
begin
    with touched as materialized (
        select distinct t.thread_id
          from unchanged o
          join threads t using (message_id)
         where not exists (
               select from messages m
                where (m.list, m.month, m.message_id, m.variant)
                      = (o.list, o.month, o.message_id, o.variant)
                  and (m.from_name, m.from_email, m.sent_at, m.subject, m.body_text, m.segments,
                       m.attachments @> '[{"is_patch": true}]')
                      is not distinct from (o.from_name, o.from_email, o.sent_at, o.subject,
                                            o.body_text, o.segments,
                                            o.attachments @> '[{"is_patch": true}]'))),
    dropped as (
        delete from thread_summaries s using touched where s.thread_id = touched.thread_id)
    insert into summary_changes (thread_id) select thread_id from touched;
    return null;
end $$;

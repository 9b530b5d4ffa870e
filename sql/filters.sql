-- One condition per field of a query, on messages m. search/filters.py puts the conditions of a
-- request, or their negations, in place of {passes} in search.sql. It leaves the others out: a
-- condition that is always true would keep the planner from using indexes. No condition may be null.

-- name: lists
m.list = any(%(lists)s)

-- name: one_list
-- For messages by date: with an equality, the index (list, sent_at) returns a list in order.
m.list = (%(lists)s::text[])[1]

-- name: months
m.month = any(%(months)s)

-- name: after
m.sent_at >= %(after)s::timestamptz

-- name: before
m.sent_at < %(before)s::timestamptz

-- name: past_newest
-- Messages that follow a given one in newest-first order.
m.sent_at <= %(moment)s and (m.sent_at < %(moment)s or m.message_id > %(message_id)s)

-- name: past_oldest
m.sent_at >= %(moment)s and (m.sent_at > %(moment)s or m.message_id > %(message_id)s)

-- name: senders
lower(m.from_email) = any(%(senders)s)

-- name: receiver
-- The index messages_receivers has all receivers of a message as one text, one per line. A value has
-- no line breaks, so it matches within one receiver.
join_receivers(m.recipients, m.cc) like like_pattern(%(receiver)s)

-- name: receiver_part
-- Like receiver, but ignores addresses in their plain form, which the index includes.
join_receivers(m.recipients, m.cc) like like_pattern(%(receiver_part)s)
and join_receivers(m.recipients, m.cc) ~ lower(%(outside)s)

-- name: receiver_name
-- Like receiver_part, but also ignores disguised addresses in names. Capitals can be part of a
-- disguise, so the text is compared before it is lowered. Costs 60 us per message that has a hint
-- of an address. With `and` instead of `case`, the planner would look for disguises first.
case when join_receivers(m.recipients, m.cc) ~ lower(%(outside)s)
     then regexp_replace(array_to_string(m.recipients || m.cc, e'\n'), '\S+@\S+', '', 'g') !~ %(hints)s
          or regexp_replace(array_to_string(m.recipients || m.cc, e'\n'), '\S+@\S+', '', 'g') !~ %(signs)s
          or lower(regexp_replace(array_to_string(m.recipients || m.cc, e'\n'),
                                  %(addresses)s, e'\n', 'g'))
             like like_pattern(%(receiver_name)s)
     else false end

-- name: subject
lower(m.subject) like like_pattern(%(subject)s)

-- name: shown_subject
-- Like subject, but ignores addresses.
lower(m.subject) like like_pattern(%(shown_subject)s)
and (m.subject !~ %(hints)s or m.subject !~ %(signs)s
     or lower(regexp_replace(m.subject, %(addresses)s, e'\n', 'g'))
        like like_pattern(%(shown_subject)s))

-- name: threads
-- An array, so that an index is used also below OR.
m.message_id = any(array(select t.message_id from threads t where t.thread_id = any(%(threads)s)))

-- name: ids
m.message_id = any(%(ids)s)

-- name: patch
(m.segments @> '[["patch"]]' or m.attachments @> '[{"is_patch": true}]')

-- name: reply
(m.in_reply_to <> '{}' or m.refs <> '{}')

-- name: first
(m.in_reply_to = '{}' and m.refs = '{}')

-- name: attachment
m.attachments <> '[]'

-- name: patches
-- Only copies that have the patch, not other texts under its id.
m.message_id = any(%(patches)s)
and exists (
    select from patches p
     where (p.list, p.month, p.message_id, p.variant) = (m.list, m.month, m.message_id, m.variant))

-- name: state
-- Like patches, for states with too many patches to list their ids.
(exists (
    select from patch_states s
     where (s.state, s.message_id) = (%(state)s, m.message_id)
       and (not (select hides_lists()) or s.lists <@ (select shown_lists())))
 or (select hides_lists())
    and m.message_id in (select x.message_id from mixed_patch_states x where x.state = %(state)s))
and exists (
    select from patches p
     where (p.list, p.month, p.message_id, p.variant) = (m.list, m.month, m.message_id, m.variant))

-- name: file
-- The index messages_file_names has all file names of a message as one text, one per line. A value
-- has no line breaks, so it matches within one name.
m.attachments <> '[]' and join_file_names(m.attachments) like like_pattern(%(file)s)

-- name: shown_file
-- Like file, but ignores addresses.
m.attachments <> '[]' and join_file_names(m.attachments) like like_pattern(%(shown_file)s)
and exists (
    select from jsonb_array_elements(m.attachments) as f (file)
     where lower(f.file ->> 'name') like like_pattern(%(shown_file)s)
       and (f.file ->> 'name' !~ %(hints)s or f.file ->> 'name' !~ %(signs)s
            or lower(regexp_replace(f.file ->> 'name', %(addresses)s, e'\n', 'g'))
               like like_pattern(%(shown_file)s)))

-- name: changed
-- Mails of commits that change a file, as in search_patches.sql, for parts with too many to list.
m.message_id in (
    select k.message_id
      from commits c
      join commit_links k using (repository, sha)
     where c.changed_names like like_pattern(%(part)s)
       and c.list = any((select shown_lists())::text[]) and k.kind <> 'missing'
       and changes_file(c.changed_names, %(part)s, %(hidden)s))
and not exists (select from shown_texts t where t.message_id = m.message_id)

-- name: words
m.search @@ %(words)s::tsquery

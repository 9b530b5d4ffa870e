-- What is stored, per list. Used by tables/stats.py.

-- name: lists
-- As the months recorded it; where the words or vectors of a month were last written to another
-- index, its keys of this one are counted.
select l.list,
       coalesce(a.months, 0)::int as months, coalesce(a.found, 0)::int as found,
       coalesce(m.messages, 0)::int as messages,
       coalesce(m.duplicates, 0)::int as duplicates,
       coalesce(q.quarantined, 0)::int as quarantined,
       coalesce(r.removed, 0)::int as removed,
       coalesce(w.words, 0)::int as words,
       coalesce(c.chunks, 0)::int as chunks,
       coalesce(v.vectors, 0)::int as vectors
  from unnest(%(lists)s::text[]) as l (list)
  left join (select list, count(*) as months, sum(found) as found
               from mbox_archives where object_key is not null group by list) a using (list)
  left join (select list, sum((counts->>'stored')::int) as messages,
                    sum((counts->>'duplicates')::int) as duplicates
               from partitions where asset = 'messages' group by list) m using (list)
  left join (select list, count(*) as quarantined from quarantine group by list) q using (list)
  left join (select list, count(*) as removed from left_out group by list) r using (list)
  left join (select list, sum((counts->>'chunks')::int) as chunks
               from partitions where asset = 'chunks' group by list) c using (list)
  left join (select list, sum(case
                    when right(inputs, length(%(words_name)s) + 1) = ' ' || %(words_name)s
                    then (counts->>'documents')::bigint
                    else (select count(*) from words w
                           where w.list = p.list and w.month = p.month
                             and w.index_name = %(words_name)s and w.written) end) as words
               from partitions p where asset = 'words' group by list) w using (list)
  left join (select list, sum(case
                    when right(inputs, length(%(vectors_name)s) + 1) = ' ' || %(vectors_name)s
                    then (counts->>'chunks')::bigint
                    else (select count(*) from vectors v
                           where v.list = p.list and v.month = p.month
                             and v.index_name = %(vectors_name)s and v.written) end) as vectors
               from partitions p where asset = 'vectors' group by list) v using (list)
 order by l.list

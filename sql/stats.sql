-- What is stored, per list. Used by tables/stats.py.

-- name: lists
select l.list,
       coalesce(a.months, 0)::int as months, coalesce(a.found, 0)::int as found,
       coalesce(m.messages, 0)::int as messages,
       coalesce(p.duplicates, 0)::int as duplicates,
       coalesce(q.quarantined, 0)::int as quarantined,
       coalesce(r.removed, 0)::int as removed,
       coalesce(w.words, 0)::int as words,
       coalesce(c.chunks, 0)::int as chunks,
       coalesce(v.vectors, 0)::int as vectors
  from unnest(%(lists)s::text[]) as l (list)
  left join (select list, count(*) as months, sum(found) as found
               from mbox_archives where object_key is not null group by list) a using (list)
  left join (select list, count(*) as messages from messages group by list) m using (list)
  left join (select list, sum((counts->>'duplicates')::int) as duplicates
               from partitions where asset = 'messages' group by list) p using (list)
  left join (select list, count(*) as quarantined from quarantine group by list) q using (list)
  left join (select list, count(*) as removed from left_out group by list) r using (list)
  left join (select list, count(*) as words
               from words where index_name = %(words_name)s and written group by list) w
            using (list)
  left join (select list, count(*) as chunks from chunks group by list) c using (list)
  left join (select list, count(*) as vectors
               from vectors where index_name = %(vectors_name)s and written group by list) v
            using (list)
 order by l.list

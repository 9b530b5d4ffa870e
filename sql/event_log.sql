-- Old history in Dagster's database (tables of dagster 1.13). Used by defs/pruning.py.

-- name: last_checks
-- Last row and last evaluation of each check.
select distinct on (asset_key, check_name, partition) id, evaluation_event_storage_id
  from asset_check_executions
 where execution_status in ('SUCCEEDED', 'FAILED')
 order by asset_key, check_name, partition, id desc

-- name: old_checks
-- Check rows that a later evaluation has replaced.
select id, octet_length(evaluation_event)
  from asset_check_executions
 where create_timestamp < to_timestamp(%(before)s) at time zone 'UTC' and id <> all(%(last)s)
   and id < (select max(id) from asset_check_executions where id = any(%(last)s))
 order by id
 limit %(batch)s

-- name: delete_checks
delete from asset_check_executions where id = any(%(ids)s)

-- name: old_runs
-- Runs that ended before a time, in order: number and bytes of their events, and the spent events,
-- which can be deleted while the run stays. Needed events keep a run: the last materialization and
-- observation of each partition, all events of assets whose history is read, the last evaluation of
-- each check, and plans of a failed run for partitions that were not materialized since.
with old as materialized (
    select id, run_id, status
      from runs
     where id > %(after)s and status in ('SUCCESS', 'FAILURE', 'CANCELED')
       and coalesce(end_time, extract(epoch from update_timestamp at time zone 'UTC')) < %(before)s
     order by id
     limit %(batch)s)
select r.id, r.run_id, e.needed, e.bytes, e.spent, e.spent_bytes
  from old r
 cross join lateral (
       select count(*) filter (where n.needed) as needed,
              coalesce(sum(octet_length(l.event)), 0) as bytes,
              coalesce(array_agg(l.id) filter (where not n.needed and n.spent), '{}') as spent,
              coalesce(sum(octet_length(l.event)) filter (where not n.needed and n.spent), 0)
                  as spent_bytes
         from event_logs l
        cross join lateral (
              select case
                     when l.dagster_event_type in ('ASSET_MATERIALIZATION', 'ASSET_OBSERVATION')
                     then l.asset_key = any(%(histories)s) or not exists (
                          select from event_logs x
                           where x.asset_key = l.asset_key and x.id > l.id
                             and x.dagster_event_type = l.dagster_event_type
                             and (x.partition = l.partition
                                  or x.partition is null and l.partition is null))
                     when l.dagster_event_type = 'ASSET_CHECK_EVALUATION'
                     then l.id = any(%(evaluations)s)
                     when l.dagster_event_type = 'ASSET_MATERIALIZATION_PLANNED'
                     then r.status = 'FAILURE' and not exists (
                          select from event_logs x
                           where x.asset_key = l.asset_key and x.id > l.id
                             and x.dagster_event_type = 'ASSET_MATERIALIZATION'
                             and (x.partition = l.partition
                                  or x.partition is null and l.partition is null))
                     else false end as needed,
                     l.dagster_event_type is null or l.dagster_event_type = any(%(spent)s)
                         as spent) n
        where l.run_id = r.run_id) e
 order by r.id

-- name: delete_events
with gone as (
    delete from event_logs where id = any(%(ids)s) returning id)
delete from asset_event_tags t
 using gone
 where t.event_id = gone.id

-- name: runs_of_list
-- Runs of the months of a list, by their tags, and whether they have ended.
select distinct r.run_id, r.status in ('SUCCESS', 'FAILURE', 'CANCELED')
  from run_tags t
  join runs r using (run_id)
 where t.key in ('dagster/partition', 'dagster/asset_partition_range_start')
   and starts_with(t.value, %(list)s || '|')

-- name: events_of_list
-- Remaining events of a list's months, from runs of several lists or runs without tags.
select id from event_logs where starts_with(partition, %(list)s || '|')

-- name: delete_checks_of_list
delete from asset_check_executions where starts_with(partition, %(list)s || '|')

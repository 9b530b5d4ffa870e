-- What is noted when many messages of a month change at once costs as much as there are, not its
-- square. How many rows a trigger is given is not known when its statement is planned, and a plan
-- made for three rows is kept for the session. So sets are compared by `except`, which reads each
-- once; `offset 0` keeps what is read of a table to the months in question.

drop index senders_month;
create index senders_month on senders (list, month, person);

create or replace function note_senders() returns trigger language plpgsql as $$
begin
    insert into senders (list, month, address, person)
    select list, month, lower(from_email), lower(from_name || ' ' || from_email)
      from changed
    except
    select s.list, s.month, s.address, s.person
      from (select distinct list, month from changed) c
     cross join lateral (
           select list, month, address, person from senders
            where (list, month) = (c.list, c.month)
           offset 0) s;
    return null;
end $$;

create or replace function forget_senders() returns trigger language plpgsql as $$
begin
    delete from senders s
     using (select list, month, lower(from_email) as address,
                   lower(from_name || ' ' || from_email) as person
              from unchanged
            except
            select m.list, m.month, lower(m.from_email),
                   lower(m.from_name || ' ' || m.from_email)
              from (select distinct list, month from unchanged) u
             cross join lateral (
                   select list, month, from_name, from_email from messages
                    where (list, month) = (u.list, u.month)
                   offset 0) m) gone
     where (s.list, s.month, s.address, s.person)
           = (gone.list, gone.month, gone.address, gone.person);
    return null;
end $$;

create or replace function note_thread_updates() returns trigger language plpgsql as $$
begin
    insert into thread_changes
    select distinct message_id
      from (select list, month, message_id, variant, refs, in_reply_to, sent_at from changed
            except
            select list, month, message_id, variant, refs, in_reply_to, sent_at from unchanged) n;
    return null;
end $$;

-- Who wrote in each month, apart from the messages: a part of a name or address is found without
-- reading every message of a busy sender. Kept by triggers, so that nobody who writes messages can
-- forget it, and what is deleted leaves it in the same transaction.

create table senders (
    list     text not null,
    month    text not null,
    address  text not null,
    person   text not null
);
comment on table senders is 'Who wrote in each month of each list, to find senders by a part.';
comment on column senders.list is 'Name of the mailing list.';
comment on column senders.month is 'Month of the archive, YYYY-MM.';
comment on column senders.address is 'Address in From, in lower case.';
comment on column senders.person is 'Name and address in From, in lower case.';

create function note_senders() returns trigger language plpgsql as $$
begin
    insert into senders (list, month, address, person)
    select distinct c.list, c.month, lower(c.from_email),
           lower(c.from_name || ' ' || c.from_email)
      from changed c
     where not exists (
           select from senders s
            where (s.list, s.month) = (c.list, c.month)
              and s.person = lower(c.from_name || ' ' || c.from_email));
    return null;
end $$;
comment on function note_senders() is 'Adds who wrote messages to senders.';

create function forget_senders() returns trigger language plpgsql as $$
begin
    delete from senders s
     using (select distinct list, month, lower(from_name || ' ' || from_email) as person
              from unchanged) gone
     where (s.list, s.month, s.person) = (gone.list, gone.month, gone.person)
       and not exists (
           select from messages m
            where (m.list, m.month) = (s.list, s.month)
              and lower(m.from_name || ' ' || m.from_email) = s.person);
    return null;
end $$;
comment on function forget_senders() is 'Deletes those from senders who wrote no message any more.';

create trigger senders_inserted after insert on messages
referencing new table as changed
for each statement execute function note_senders();

create trigger senders_updated after update on messages
referencing new table as changed
for each statement execute function note_senders();

create trigger senders_replaced after update on messages
referencing old table as unchanged
for each statement execute function forget_senders();

create trigger senders_deleted after delete on messages
referencing old table as unchanged
for each statement execute function forget_senders();

insert into senders (list, month, address, person)
select distinct list, month, lower(from_email), lower(from_name || ' ' || from_email)
  from messages;

create index senders_month on senders (list, month);
create index senders_address on senders (address);
drop index if exists messages_sender;
do $$
begin
    if exists (select from pg_extension where extname = 'pg_trgm') then
        create index senders_person on senders using gin (person gin_trgm_ops);
    end if;
end $$;
analyze senders;

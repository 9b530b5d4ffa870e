-- An asset without partitions has no list and no month: its row says so, where '*' stood before.

alter table partitions drop constraint partitions_pkey;
alter table partitions alter column list drop not null, alter column month drop not null;
update partitions set list = null, month = null where list = '*';
alter table partitions add constraint partitions_key unique nulls not distinct (asset, list, month);

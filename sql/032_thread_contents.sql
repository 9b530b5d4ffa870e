-- Who reads what threads are made of needs the right to read the messages: row-level security of
-- the tables holds for the view too.

alter view thread_contents set (security_invoker = true);

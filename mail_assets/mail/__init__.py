"""Pure functions on the bytes and text of mail, in four rooms for four questions.

Where a message begins (`archive/`), what is in it (`message/`), who wrote which line (`body/`), who
answers whom (`threads/`). Nothing here knows Dagster, SQL, settings or the network.
"""

"""Pure functions on the bytes and text of mail, in four rooms for four questions.

`archive/`: where does a message begin? `message/`: what is in it? `body/`: who wrote which line?
`threads/`: who answers whom? Nothing here knows Dagster, SQL, settings or the network.
"""

"""Pure functions on the bytes and text of mail, in five rooms for five questions.

`archive/`: where does a message begin? `message/`: what is in it? `body/`: who wrote which line?
`threads/`: who answers whom? `patches/`: what does it change? Nothing here knows Dagster, SQL,
settings or the network.
"""

"""Pure functions on the bytes and text of mail, in five rooms, one for each question.

`archive/`: where does a message begin? `message/`: what is in it? `body/`: who wrote which line?
`threads.py`: who answers whom? `patches/`: what does it change? Nothing here knows Dagster, SQL,
settings or the network.
"""

"""How long tests wait for a thread or a process that may be lost."""

#: Seconds. What works never takes as long, on however slow a machine; what hangs is given up.
LONG = 600

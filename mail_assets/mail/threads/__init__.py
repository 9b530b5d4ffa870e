"""Who answers whom: threads out of the references of messages."""

"""Who answers whom: threads by the ids that messages name."""

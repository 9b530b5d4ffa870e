"""defs/sensors."""

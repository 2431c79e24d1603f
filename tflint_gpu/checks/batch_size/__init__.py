"""Rules 2xx: how much work a step is given."""

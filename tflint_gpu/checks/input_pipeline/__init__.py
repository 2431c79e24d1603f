"""Rules 1xx: what feeds the step."""

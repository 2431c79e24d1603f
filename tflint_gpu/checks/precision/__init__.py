"""Rules 7xx: in which number format it computes."""

"""Rules 9xx: what surrounds the run."""

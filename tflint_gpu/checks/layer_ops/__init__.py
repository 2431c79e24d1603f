"""Rules 5xx: ops that leave the GPU."""

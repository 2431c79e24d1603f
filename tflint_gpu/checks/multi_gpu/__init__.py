"""Rules 8xx: how work is spread over replicas."""

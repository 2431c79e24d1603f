"""Rules 3xx: what the model is made of."""

"""Rules 4xx: how GPU memory is set up and kept."""

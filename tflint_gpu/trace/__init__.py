"""A short run of the user's script and what it shows, written down as evidence."""

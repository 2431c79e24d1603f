"""Running the rules over files: group by group, in several processes, and only where something changed."""

"""What the code does: symbolic values, linked across the project, and the views that checks see."""

"""Findings and evidence merged into one report, and rendered."""

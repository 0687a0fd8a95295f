"""Allocation policies, one paper or rule per file."""

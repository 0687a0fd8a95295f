"""Bounds on scores, one file for each formula."""

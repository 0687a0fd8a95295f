"""Costs of trainings: predicted seconds, or examples."""

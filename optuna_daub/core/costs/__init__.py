"""Costs of trainings: measured seconds with a model of those to come, or examples."""

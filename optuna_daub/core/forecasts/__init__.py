"""Forecasts of a learner's scores at larger sizes, one forecaster per file."""

"""Forecasts of scores at sizes that a learner has not reached, one forecaster per file."""

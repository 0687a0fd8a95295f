"""Fits of the forecasts that the package ships, on learning curves of LCDB 1.1."""

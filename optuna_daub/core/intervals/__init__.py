"""Inequalities for means, one per file, and the confidence interval of ABC."""

"""Inequalities for means, one per file, and the confidence interval that ABC builds on them."""

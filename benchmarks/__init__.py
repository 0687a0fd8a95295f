"""Programs that measure what the README claims; README.md says how to run each.

They import each other as `benchmarks.<name>`: install the project editable (`pip install -e .`).
"""

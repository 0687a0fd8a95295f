"""Programs that measure what the README claims; README.md says how to run each.

They import each other as `benchmarks.<name>`: install the project editable (`pip install -e .`),
or run them as modules from the project's root (`python -m benchmarks.replay`).
"""

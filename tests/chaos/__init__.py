"""Studies whose workers, servers and clocks go wrong: `python -m tests.chaos --help`."""

"""Tables and figures of the papers, made again beside the published numbers.

    python benchmarks/paper_tables.py NAME [--smoke] [--time-limit S] ...

`python benchmarks/paper_tables.py NAME --help` tells the options of each.
"""

from __future__ import annotations

import argparse
from importlib import import_module


TABLES = {
    "daub": "Tables 1 and 2 of Sabharwal, Samulowitz and Tesauro (2016): cost and loss of DAUB",
    "abc": "Figures of Huang, Wang, Ding and Chaudhuri (2019): ABC against halving, schedulers",
    "massart": "Tables II and III of Chen and Xu (2013): examples a boosting round needs",
    "budgeted": "Figure 1 of Huang, Powers and Reyzin (2015): error against feature budget",
}
"""Modules of `benchmarks.tables` and what they make."""


def main() -> None:
    """Hand the command line to the module that it names."""
    listed = "\n".join(f"  {name:<10}{made}" for name, made in TABLES.items())
    parser = argparse.ArgumentParser(
        description=f"{__doc__.splitlines()[0]}\n\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    parser.add_argument("name", choices=TABLES, metavar="NAME")
    options, arguments = parser.parse_known_args()
    import_module(f"benchmarks.tables.{options.name}").main(arguments)


if __name__ == "__main__":
    main()

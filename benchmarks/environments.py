"""Environments of peers that cannot live beside current numpy, or that weigh gigabytes."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path


CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "optuna_daub_benchmarks"
"""Folder of the environments of peers that need their own."""
HOMES: dict[str, tuple[str, ...]] = {
    "gp": ("torch==2.13.*", "optuna==5.0.0", "cmaes", "scikit-learn", "scipy", "psutil"),
    "smac": ("smac==2.4.1",),
    "autogluon": ("autogluon.tabular[lightgbm,xgboost]==1.6.3",),  # wants pandas below 3
    "syne-tune": ("syne-tune==0.16.0", "huggingface_hub", "fastparquet", "h5py"),
}
"""Packages for pip, by environment."""


def environment(home: str) -> Path:
    """Return the Python of a peer's environment. It is made if it is absent."""
    folder = CACHE / home
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = folder / "installed"
    wanted = "\n".join(HOMES[home])
    if not done.exists() or done.read_text(encoding="utf-8") != wanted:
        print(f"Making {folder} for {', '.join(HOMES[home])}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *HOMES[home]], check=True)
        done.write_text(wanted, encoding="utf-8")
    return python

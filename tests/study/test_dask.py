"""A Dask cluster: the study on its scheduler, the pair sent to the workers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "dask_workers.py"


def test_the_workers_of_a_cluster_find_the_best_and_the_scheduler_keeps_it(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    pytest.importorskip("optuna_integration")
    at = ["--storage", "sqlite:///dask.db"]
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), "--workers", "2", *at],
        cwd=tmp_path,
        env=os.environ | {"OPTUNA_DAUB_SMOKE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^score 0\.\d+: best: ", done.stdout, re.MULTILINE)
    assert "Traceback" not in done.stderr
    assert (tmp_path / "dask.db").exists()


@pytest.mark.timeout(1000)
def test_a_killed_worker_loses_its_probe_and_no_more(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    pytest.importorskip("optuna_integration")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.study.dask_study", "journal", tmp_path, "2"],
        cwd=EXAMPLE.parents[1],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    assert "probes begun" in done.stdout


def test_without_dask_the_example_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "distributed.py").write_text("raise ImportError('No module named distributed')")
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{EXAMPLE.parents[1]}"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 1
    assert "pip install 'optuna-daub[workers]'" in done.stderr

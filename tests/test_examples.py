"""Each example runs as a script, in smoke mode, with warnings as errors."""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import joblib
import numpy as np
import optuna
import pytest
from sklearn.datasets import load_digits


EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py") if "__main__" in path.read_text())


def run(directory: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OPTUNA_DAUB_SMOKE": "1", "OMP_NUM_THREADS": "1"}
    script, *arguments = command
    return subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / script), *arguments],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


Here = Callable[..., str]


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Here]:
    """Run a script in this process, which has imported what the scripts import."""

    def run_here(script: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        try:
            runpy.run_path(str(EXAMPLES / script), run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise
        return capsys.readouterr().out

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPTUNA_DAUB_SMOKE", "1")
    monkeypatch.syspath_prepend(EXAMPLES)
    yield run_here
    for name in {path.stem for path in EXAMPLES.glob("*.py")} & {*sys.modules}:
        del sys.modules[name]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pool() -> ModuleType:
    return load("pool")


@pytest.fixture(scope="module")
def data() -> ModuleType:
    return load("data")


def table_of(output: str) -> str:
    return output[output.index("state\n") :]


def test_the_scripts_are_found() -> None:
    assert {"pruner_alone.py", "quickstart.py", "tpe_lightgbm.py"} <= {*SCRIPTS}


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_says_how_to_run_it(script: str) -> None:
    source = (EXAMPLES / script).read_text()
    assert source.startswith('"""')
    assert f"python examples/{script}" in source.split('"""')[1]


def test_quickstart_is_short() -> None:
    assert len((EXAMPLES / "quickstart.py").read_text().splitlines()) < 80


def table_for_search_cv(folder: Path) -> list[str]:
    load("search_cv").made(400).to_csv(folder / "parcels.csv", index=False)
    return ["parcels.csv", "--seconds", "3"]


ARGUMENTS: dict[str, Callable[[Path], list[str]]] = {
    "approximate_best.py": lambda _: ["--learners", "3"],
    "search_cv.py": table_for_search_cv,
}
"""Less to do than in smoke mode."""


# Those of automl.py and quickstart.py are below, that of dask_workers.py is
# tests/study/test_dask.py.
@pytest.mark.slow
@pytest.mark.parametrize(
    "script", sorted({*SCRIPTS} - {"automl.py", "dask_workers.py", "quickstart.py"})
)
def test_a_script_runs(script: str, tmp_path: Path, here: Here) -> None:
    for package in ("lightgbm", "torch"):
        if re.search(rf"\b(from|import) {package}\b", (EXAMPLES / script).read_text()):
            pytest.importorskip(package)
    arguments = ARGUMENTS.get(script, lambda _: [])(tmp_path)
    if script == "workers.py":  # whose processes import it
        done = run(tmp_path, script, *arguments)
        assert done.returncode == 0, done.stderr
        assert done.stdout
    else:
        assert here(script, *arguments)


@pytest.mark.slow
def test_quickstart_goes_on_from_where_two_threads_were(tmp_path: Path, here: Here) -> None:
    first = run(tmp_path, "quickstart.py", "--learners", "4", "--n-jobs", "2")
    assert first.returncode == 0, first.stderr
    assert " is best: " in first.stdout
    assert "all 4 on all the data              8,000" in first.stdout
    assert (tmp_path / "quickstart.db").exists()
    assert table_of(here("quickstart.py", "--learners", "4")) == table_of(first.stdout)


@pytest.mark.slow
def test_quickstart_reads_a_file(tmp_path: Path, here: Here) -> None:
    write_table(pytest.importorskip("pandas"), tmp_path / "fruit.csv")
    where = ("--data", "fruit.csv", "--target", "name", "--storage", "sqlite:///fruit.db")
    said = here("quickstart.py", *where, "--learners", "3")
    assert " is best: " in said
    assert " 1,400 " in said
    assert (tmp_path / "fruit.db").exists()


@pytest.mark.slow
def test_quickstart_needs_a_target_with_a_file(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        here("quickstart.py", "--data", "fruit.csv")
    assert "--data and --target go together" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_becomes_numbers(kind: str, data: ModuleType, tmp_path: Path) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    write_table(pytest.importorskip("pandas"), tmp_path / f"fruit.{kind}")
    X, y, X_valid, y_valid = data.read_table(str(tmp_path / f"fruit.{kind}"), "name", 1_000)
    assert X.shape == (1_000, 3)  # weight, blue, red
    assert X_valid.shape == (600, 3)
    assert np.isfinite(X).all()
    assert (X[:, 1] + X[:, 2] == 1).all()
    assert set(y) == set(y_valid) == {0, 1}
    heavy = X[:, 0] > 100
    assert (y[heavy] == 0).mean() > 0.8  # apples, the first of the names


@pytest.mark.parametrize(
    ("target", "n_train", "message"),
    [
        ("nme", None, "--target must be a column of .*, which has weight, colour, name"),
        ("name", 1_401, r"--train-rows must be in \[1, 1400\], but got 1401"),
    ],
)
def test_a_table_is_refused(
    target: str, n_train: int | None, message: str, data: ModuleType, tmp_path: Path
) -> None:
    write_table(pytest.importorskip("pandas"), tmp_path / "fruit.csv")
    with pytest.raises(SystemExit, match=message):
        data.read_table(str(tmp_path / "fruit.csv"), target, n_train)


def write_table(pandas: ModuleType, path: Path) -> None:
    """Write 2,000 rows with a column of text, missing numbers and classes that have names."""
    rng = np.random.default_rng(0)
    name = rng.choice(["apple", "plum"], 2_000)
    weight = np.where(name == "apple", 150.0, 50.0) + rng.normal(0, 40, 2_000)
    weight[rng.random(2_000) < 0.1] = np.nan
    table = pandas.DataFrame(
        {"weight": weight, "colour": rng.choice(["red", "blue"], 2_000), "name": name}
    )
    table.to_csv(path, index=False) if path.suffix == ".csv" else table.to_parquet(path)


def test_parity_is_of_five_bits_that_tell_nothing_alone(data: ModuleType) -> None:
    X, y, X_valid, _ = data.parity()
    assert X.shape == X_valid.shape == (21_500, 16)
    everything = np.concatenate([X, X_valid])
    assert len(np.unique(everything, axis=0)) == 43_000
    assert set(np.unique(everything)) == {0, 1}
    np.testing.assert_array_equal(y, X[:, :5].sum(axis=1) % 2)
    agreement = (y[:, None] == X).mean(axis=0)
    assert np.abs(agreement - 0.5).max() < 0.02


def test_all_patterns_but_one_are_in_parity(data: ModuleType) -> None:
    X, _, X_valid, _ = data.parity(65_000, 535)
    assert len(np.unique(np.concatenate([X, X_valid]), axis=0)) == 65_535


def test_the_pool_has_the_learners_of_the_recorded_curves(
    pool: ModuleType, shared: Callable[[str], Path]
) -> None:
    lines = shared("tables/covtype.csv").read_text().splitlines()[1:]
    assert list(pool.POOL) == list(dict.fromkeys(line.split(",")[0] for line in lines))


def test_the_pool_suggests_fixed_values_under_the_learners_name(pool: ModuleType) -> None:
    def check(trial: optuna.Trial) -> float:
        pool.build(trial)
        learner = trial.params["learner"]
        own = {name for name in trial.params if name != "learner"}
        assert own == {f"{learner}.{setting}" for setting in pool.POOL[learner][1]}
        assert all(trial.distributions[name].single() for name in own)
        return 0.0

    pytest.importorskip("lightgbm")
    pytest.importorskip("xgboost")
    grid = optuna.samplers.GridSampler({"learner": list(pool.POOL)}, seed=0)
    study = optuna.create_study(sampler=grid)
    study.optimize(check)
    assert sorted(trial.params["learner"] for trial in study.trials) == sorted(pool.POOL)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_learner_of_the_pool_learns_twice_the_same(
    pool: ModuleType, data: ModuleType
) -> None:
    pytest.importorskip("lightgbm")
    pytest.importorskip("xgboost")
    X, y, *_ = data.parity(300, 1)
    for learner, (_, settings) in pool.POOL.items():
        values = {f"{learner}.{name}": value for name, value in settings.items()}
        trial = optuna.trial.FixedTrial({"learner": learner} | values)
        one, other = (pool.build(trial).fit(X, y).predict(X) for _ in range(2))
        np.testing.assert_array_equal(one, other, err_msg=learner)


@pytest.mark.slow
def test_automl_saves_a_model_that_reads_tables(tmp_path: Path) -> None:
    for extra in ("skrub", "lightgbm", "xgboost"):
        pytest.importorskip(extra)
    done = run(tmp_path, "automl.py")
    assert done.returncode == 0, done.stderr
    assert "taken for classes" in done.stdout
    digits = load_digits(as_frame=True).frame
    digits.to_csv(tmp_path / "digits.csv", index=False)
    model = joblib.load(tmp_path / "model.joblib")
    assert {*model.predict(tmp_path / "digits.csv")} == {*digits.target}


@pytest.mark.slow
def test_automl_ends_in_one_sentence(tmp_path: Path, here: Here) -> None:
    pytest.importorskip("skrub")
    (tmp_path / "small.csv").write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(SystemExit, match=r"^`target` must be a column of the table"):
        here("automl.py", "small.csv")

"""Tables end in a model or in one sentence, in Python and at the command line."""

from __future__ import annotations

import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from io import BytesIO
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import optuna
import pytest
import sklearn
from sklearn.ensemble import ExtraTreesClassifier

from optuna_daub import __main__ as program
from optuna_daub.spaces import SPACES
from optuna_daub.study import host
from optuna_daub.study import learning_curves
from optuna_daub.tabular import TableError
from optuna_daub.tabular import TabularModel
from optuna_daub.tabular import commands
from optuna_daub.tabular import fit
from optuna_daub.tabular.search import Search
from tests import arguments
from tests.arguments import Case
from tests.tabular.tables import N
from tests.tabular.tables import table
from tests.tabular.tables import told


for extra in ("skrub", "lightgbm", "xgboost", "pyarrow"):
    pytest.importorskip(extra)
pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def answered() -> tuple[TabularModel, str]:
    return told(table())


TIMES: dict[str, Callable[[Any], Any]] = {
    "dates": lambda day: pandas.Timestamp("2020") + pandas.to_timedelta(day, unit="D"),
    "text": lambda day: (pandas.Timestamp("2020") + pandas.to_timedelta(day, unit="D")).map(str),
    "durations": lambda day: pandas.to_timedelta(day, unit="D"),
}
"""Columns of dates or durations made of whole days."""


class TestAModel:
    def test_threads_bring_back_no_warnings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fitted = ExtraTreesClassifier.fit

        def noisy(model: Any, *rows: Any) -> Any:
            warnings.resetwarnings()  # as scikit-learn's threads leave it if they are unlucky
            warnings.warn("noise", UserWarning, stacklevel=1)
            return fitted(model, *rows)

        monkeypatch.setattr(ExtraTreesClassifier, "fit", noisy)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            told(table(), models=["extra_trees"])
            assert not seen
            warnings.warn("own", UserWarning, stacklevel=1)
        assert len(seen) == 1

    def test_it_answers_in_the_words_of_the_table(
        self, answered: tuple[TabularModel, str], tmp_path: Path
    ) -> None:
        model, said = answered
        assert "`target` has 2 classes" in said
        assert model.score > 0.8
        answers = model.predict(table(50, seed=1))
        assert {*answers} <= {"yes", "no"}
        assert np.mean(answers == table(50, seed=1)["target"]) > 0.7
        shares = model.predict_proba(table(50, seed=1))
        np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-5)
        np.testing.assert_array_equal(model.classes[shares.argmax(axis=1)], answers)
        model.save(tmp_path / "m.joblib")
        loaded = joblib.load(tmp_path / "m.joblib")
        np.testing.assert_array_equal(loaded.predict(table(50, seed=1)), answers)
        with pytest.raises(ValueError, match=r"loaded from a file has none"):
            loaded.report(tmp_path / "r.html")

    def test_it_predicts_amounts(self) -> None:
        frame = table().drop(columns="target").assign(price=lambda t: 3 * t.a + 10)
        model, _ = told(frame, "price", metric="rmse", models=["linear"])
        assert model.task == "regression"
        assert model.score < model.found.guess / 5
        assert model.predict(frame).shape == (N,)
        with pytest.raises(ValueError, match=r"`predict_proba` needs a model of classes"):
            model.predict_proba(frame)

    @pytest.mark.parametrize("kind", TIMES)
    def test_it_predicts_dates_and_durations(self, kind: str, tmp_path: Path) -> None:
        """From a frame and from a file, which may keep text only."""
        frame = table().drop(columns="target").assign(c=np.arange(N))
        frame["when"] = TIMES[kind](frame.c)
        frame = frame.sample(frac=1.0, random_state=0)
        model, _ = told(frame, "when", metric="mae", models=["linear"])
        frame.drop(columns="when").to_csv(tmp_path / "new.csv", index=False)
        model.save(tmp_path / "m.joblib")
        found = joblib.load(tmp_path / "m.joblib").predict(tmp_path / "new.csv")
        wanted = pandas.Series(frame.when)
        if not kind.startswith("duration"):
            wanted = pandas.to_datetime(wanted)
        assert found.dtype.kind == wanted.to_numpy().dtype.kind
        error = np.abs(found - wanted.to_numpy()) / np.timedelta64(1, "D")
        assert error.mean() < 30 < (wanted.max() - wanted.min()) / pandas.Timedelta(days=4)

    @pytest.mark.parametrize("kind", ["pandas", "polars"])
    @pytest.mark.parametrize("task", ["classification", "regression"])
    def test_the_users_kind_of_output_changes_nothing(self, task: Any, kind: str) -> None:
        pytest.importorskip(kind)
        frame = table()
        if task == "regression":
            frame["target"] = np.exp(frame.a)
        with sklearn.config_context(transform_output=kind):
            model, _ = told(frame, models=["linear"], metric=None if task[0] == "c" else "rmsle")
            predicted = model.predict(frame)
        assert model.found.failures == ()
        assert (predicted == model.predict(frame)).all()

    def test_ratios_of_dates_are_refused(self) -> None:
        frame = table().assign(target=pandas.date_range("2020", periods=N))
        for metric in ("mape", "rmsle", "neg_mean_poisson_deviance"):
            with pytest.raises(TableError, match=r"compares ratios.*take \"r2\""):
                fit(frame, "target", metric=metric, say=None)

    @pytest.mark.slow
    def test_all_kinds_of_models_take_part(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The search ends once each has a score, so no seconds decide."""
        optimize = optuna.Study.optimize

        def until_all_took_part(study: optuna.Study, *given: Any, **options: Any) -> None:
            def end(study: optuna.Study, trial: Any) -> None:
                seen = [curve for curve in learning_curves(study) if curve.observations]
                if {curve.params["model"] for curve in seen} == {*SPACES}:
                    study.stop()

            callbacks = [*options.pop("callbacks"), end]
            optimize(study, *given, n_trials=100, callbacks=callbacks, catch=options["catch"])

        monkeypatch.setattr(optuna.Study, "optimize", until_all_took_part)
        model, _ = told(table(100), seconds=600.0, models=None)
        assert {row.kind for row in model.found.models} == {*SPACES}
        assert model.found.failures == ()

    def test_its_summary_has_what_a_person_asks(self, answered: tuple[TabularModel, str]) -> None:
        said = str(answered[0])
        for phrase in ("Best of", "accuracy (larger is better)", "same guess", "All in all"):
            assert phrase in said
        assert re.search(rf"fitted on \d+ of {N} rows", said)

    def test_less_than_two_thousand_rows_make_folds(
        self, answered: tuple[TabularModel, str]
    ) -> None:
        assert (answered[0].found.folds, answered[0].found.n_validation) == (5, N)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        model, _ = told(table(3000), models=["linear"])
        assert (model.found.folds, model.found.n_validation) == (1, 600)
        assert optuna.logging.get_verbosity() == optuna.logging.ERROR, "as it was"

    def test_a_table_without_a_signal_says_so(self) -> None:
        rng = np.random.default_rng(0)
        frame = table(100).assign(target=rng.choice(["yes", "no"], 100, p=[0.8, 0.2]))
        model, _ = told(frame[["c", "target"]], models=["linear"], metric="accuracy")
        for guess, is_better in ((model.score - 0.1, True), (model.score, False)):
            found = replace(model.found, guess=guess)
            assert ("No model is better" in str(replace(model, found=found))) != is_better

    def test_no_time_at_all_still_trains_one_model(self) -> None:
        model, said = told(table(), seconds=0.001)
        assert "one model is trained" in said
        assert {*model.predict(table())} <= {"yes", "no"}

    def test_a_file_is_read_as_that_of_the_fit(self, tmp_path: Path) -> None:
        frame = table(3000)
        rooms = np.random.default_rng(1).choice(["12", "007", "A3"], 3000)
        frame = frame.assign(room=rooms, a=1000 * frame.a)
        frame["target"] = np.where(frame.room == "007", 5000.0, frame.a)
        frame.to_csv(tmp_path / "old.csv", sep=";", decimal=",", index=False)
        model, said = told(tmp_path / "old.csv", models=["extra_trees"], seconds=1.5)
        assert "decimal commas" in said
        new = "a;b;c;colour;room\n2.000;0;0;red;12\n2.000;0;0;red;007\n"
        (tmp_path / "new.csv").write_text(new, encoding="utf-8")
        same = frame.head(2).assign(a=2000.0, b=0.0, c=0.0, colour="red", room=["12", "007"])
        found = model.predict(tmp_path / "new.csv")
        np.testing.assert_array_equal(found, model.predict(same))
        assert found[0] < found[1]

    def test_rare_classes_are_scored_by_their_probabilities(self) -> None:
        frame = table(3000)
        frame.loc[:1, "target"] = "rare"
        model, _ = told(frame, metric="log_loss", models=["linear"])
        assert [*model.classes] == ["no", "rare", "yes"]


def odd_columns(t: Any) -> Any:
    """Return a table with an infinity, lists, periods, an index and odd names."""
    t = t.assign(
        b=[np.inf, *t.b[1:]], odd=[["a"]] * N, when=pandas.period_range("2020", periods=N)
    )
    return t.reset_index(names="id").rename(columns={"a": 'a "<>[],:{}', "b": "ü b"})


def wide(t: Any) -> Any:
    """Return a table of many columns, of which some have numbers as names, with gaps."""
    rng = np.random.default_rng(0)
    more = pandas.DataFrame(rng.normal(size=(N, 400))).add_prefix("w")
    t = pandas.concat([t.rename(columns={"a": 1, "b": 2.5}), more], axis=1)
    return t.mask(rng.uniform(size=t.shape) < 0.2)


def whole_numbers(t: Any) -> Any:
    return t.assign(target=(14 + 4 * t.a).clip(0, 27).round().astype(int))


ODD: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "odd columns": (
        odd_columns,
        ("1 infinite value taken for", "Left out: `odd`", "`id`, which numbers the rows"),
    ),
    "a wide table": (wide, ("without a",)),
    "a leak": (lambda t: t.assign(paid=t.target == "yes"), ("`paid` alone gives `target` away",)),
    "a rare class of a category": (
        lambda t: t.assign(target=pandas.Categorical(["rare", *t.target[1:]])),
        ("(rare) left out",),
    ),
    "three rows of a class": (lambda t: t.assign(target=["x"] * 3 + [*t.target[3:]]), ()),
    "few rows": (lambda t: t.head(25), ()),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ODD)
def test_an_odd_table_ends_in_a_model(kind: str) -> None:
    change, phrases = ODD[kind]
    frame = change(table())
    model, said = told(frame)
    for phrase in phrases:
        assert phrase in said
    assert len(model.predict(frame.head(7))) == 7
    assert model.found.failures == ()


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no rows": (lambda t: t.head(0), "must have rows"),
    "few rows": (lambda t: t.head(10), "at least 20 rows"),
    "times of day as target": (
        lambda t: t.assign(target=pandas.date_range("2020", periods=N, freq="h").time),
        "has values of time",
    ),
    "one class": (lambda t: t.assign(target="yes"), "`target` is yes in every row"),
    "identifiers": (lambda t: t.assign(target=[f"i{i}" for i in range(N)]), "different ones"),
    "nothing but the target": (lambda t: t[["target"]], "a column to learn `target` from"),
    "nothing but an index": (
        lambda t: t.reset_index(names="id")[["id", "target"]],
        "none is left",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_table_of_no_use_ends_in_one_sentence_before_training(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, phrase = REFUSED[kind]
    monkeypatch.setattr(optuna, "create_study", lambda **_: pytest.fail("something was trained"))
    with pytest.raises(TableError, match=phrase) as error:
        told(change(table()))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"metric": "rmse"}, "is one of regression"),
        ({"ignore": ["z"]}, "`ignore` must have columns of the table, but got 'z'"),
        ({"models": ["svm"]}, "`models` must have names of .* but got 'svm'"),
        ({"ignore": ["target"]}, "`ignore` must not have the target, but got 'target'"),
        ({"storage": "yes"}, "`storage` must be a URL such as .* cannot be opened: "),
        ({"storage": "sqlite:////no/where.db"}, "cannot be opened: .*unable to open database"),
        ({"target": table().target}, "`target` must be a column of the table, but got 0 "),
        ({"target": "prise"}, "`target` must be a column"),
    ],
)
def test_wrong_arguments_are_named(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        told(table(), **({"target": "target"} | options))


def test_words_for_progress_need_a_function() -> None:
    with pytest.raises(ValueError, match=r"`say` must be a function or None, but got 'print'"):
        fit(table(), "target", say="print")  # type: ignore[arg-type]


asked = partial(arguments.up_to, Search, "run", fit)
FIT = Case(
    asked,
    {"table": table(60), "target": "target", "say": None, "models": ["linear"]},
    {
        "target": arguments.one_of("target", "a", "b", "c", "colour"),
        "seconds": arguments.real(0, np.inf, is_open=True),
        "task": arguments.none_or(arguments.one_of("auto", "classification", "regression")),
        "metric": arguments.none_or(lambda value: str(value).strip() in ("accuracy", "f1_macro")),
        "ignore": arguments.a_list(lambda value: str(value) in ("a", "b", "c", "colour")),
        "models": arguments.none_or(arguments.a_list(lambda value: value in SPACES, 1)),
        "jobs": arguments.none_or(arguments.whole()),
        "seed": arguments.whole(0, 2**32 - 1),
        "header": arguments.one_of("auto", "yes", "no"),
        "storage": lambda value: value is None,
    },
    frozenset({"storage"}),  # it may hold a password
)


@pytest.mark.parametrize("argument", FIT.rules)
def test_odd_arguments_are_refused_before_the_search(argument: str) -> None:
    asked(**FIT.valid)  # skrub takes seconds to load
    values = (*arguments.ODD, " accuracy ", [["a"]])
    for value in values:
        arguments.check("tabular.fit", {argument: value}, FIT)


WRITTEN = " must be a file that can be written"
OF_ITS_OWN = " must be a file of its own"


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Run:
    """Return a function that runs a command beside `t.csv`: its code, output and errors."""
    monkeypatch.chdir(tmp_path)
    table().to_csv("t.csv", index=False)

    def command(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["optuna_daub", *words])
        return program.main(), *capsys.readouterr()

    return command


class TestTheCommands:
    @pytest.mark.slow
    def test_the_example_says_what_it_found_and_what_it_saved(self, run: Run) -> None:
        code, said, error = run("example", "--rows", "1000", "--minutes", "0.04")
        assert (code, error) == (0, "")
        assert "predict `quality` from 20 measures" in said
        assert re.search(r"Best of \d+ models: ", said)
        assert re.search(r"Training each of the \d+ models on all rows would have taken", said)
        code, _, error = run("example", "--rows", "10")
        assert (code, error) == (2, "`--rows` must be at least 1000, but got 10.\n")

    @pytest.mark.slow
    def test_a_file_becomes_a_model_a_report_and_predictions(self, run: Run) -> None:
        pytest.importorskip("plotly")
        table().to_csv("t.csv", index=False, sep=";", decimal=",")
        quick = ["--minutes", "0.02", "--models", "linear", "extra_trees", "--jobs", "1"]
        files = ["--save", "a model", "--report", "r.html"]
        code, said, error = run("fit", "t.csv", *quick, *files)
        assert (code, error) == (0, "")
        assert "decimal commas" in said
        assert "Saved as a model" in said
        assert shlex.split(said.splitlines()[-2])[-1] == "a model"
        page = Path("r.html").read_text(encoding="utf-8")
        assert page.count("<h2>") == 5
        assert page.count("Plotly.newPlot") >= 3
        assert "<script src" not in page
        assert "cdn.plot.ly" not in page.split("plotly.js v")[0]
        code, said, _ = run("predict", "t.csv", "--model", "a model")
        assert code == 0
        assert said.splitlines()[0] == "target"
        assert {*said.splitlines()[1:]} == {"yes", "no"}
        words = "--model", "a model", "--proba", "--out", "out.csv"
        assert run("predict", "t.csv", *words)[0] == 0
        found = pandas.read_csv("out.csv")
        assert [*found.columns] == ["target", "target=no", "target=yes"]
        assert len(found) == N

    @pytest.mark.slow
    def test_a_file_with_an_amount_as_target_becomes_a_model_of_amounts(self, run: Run) -> None:
        frame = whole_numbers(table())
        frame.to_csv("t.csv", index=False)
        words = "--minutes", "0.01", "--models", "linear", "--jobs", "1", "--save", "m"
        code, said, error = run("fit", "t.csv", *words)
        assert (code, error) == (0, "")
        assert "taken for amounts" in said
        code, said, error = run("predict", "t.csv", "--model", "m")
        assert (code, error) == (0, "")
        name, *amounts = said.splitlines()
        assert (name, len(amounts)) == ("target", N)
        errors = np.array(amounts, float) - frame.target
        assert np.std(errors) < np.std(frame.target) / 2

    @pytest.mark.parametrize(
        ("words", "match"),
        [
            (["fit", "absent.csv"], "absent.csv is no file"),
            (["fit", "t.csv", "--target", "z"], "`target` must be a column"),
            (["fit", "u.csv"], "`--target` is missing, so it is 'target'. `target` must be a"),
            (["fit", "t.csv", "--save", "no/where/m"], "`--save`" + WRITTEN),
            (["fit", "t.csv", "--save", "."], "`--save`" + WRITTEN),
            (["fit", "t.csv", "--save", "m" * 5000], "`--save`" + WRITTEN),
            (["fit", "t.csv", "--report", "."], "`--report`" + WRITTEN),
            (["predict", "t.csv", "--out", "no/where.csv"], "`--out`" + WRITTEN),
            (["fit", "t.csv", "--save", "./t.csv"], "`--save`" + OF_ITS_OWN),
            (["fit", "t.csv", "--report", "t.csv"], "`--report`" + OF_ITS_OWN),
            (["fit", "t.csv", "--save", "m", "--report", "m"], "`--save`" + OF_ITS_OWN),
            (["predict", "t.csv", "--out", "t.csv"], "`--out`" + OF_ITS_OWN),
            (["predict", "t.csv", "--model", "m", "--out", "m"], "`--out`" + OF_ITS_OWN),
            (["fit", "t.csv", "--metric", "rmse"], "is one of regression"),
            (["fit", "t.csv", "--jobs", "0"], "`jobs` must be at least 1 or None, but got 0"),
            (["fit", "t.csv", "--seed", "-1"], "`seed` must be an int from 0 to 2**32"),
            (["fit", "t.csv", "--minutes", "1e307"], "`seconds` must be above 0 and finite"),
            (["fit", "t.csv", "--storage", "yes"], "`storage` must be a URL"),
            (["fit", "x" * 5000], "must be a file"),
            (["predict", "t.csv", "--model", "none"], "none is no file"),
            (["predict", "t.csv", "--model", "t.csv"], "cannot be loaded"),
        ],
    )
    def test_what_is_wrong_is_one_sentence(self, words: list[str], match: str, run: Run) -> None:
        table().rename(columns={"target": "paid"}).to_csv("u.csv", index=False)
        code, _, error = run(*words)
        assert code == 2
        assert match in error
        assert error.count("\n") == 1

    @pytest.mark.parametrize("command", ["fit", "predict", "example"])
    @pytest.mark.parametrize("fault", ["int('five')", "np.zeros(2) + np.zeros(3)", "1 / 0"])
    def test_a_fault_of_ours_can_be_seen(
        self, command: str, fault: str, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A ValueError that nobody meant for the user: of a package, or of a line of ours."""

        def broken(*_: Any, **__: Any) -> None:
            eval(fault, {"np": np, "__name__": "optuna_daub.tabular.fitting"})

        monkeypatch.setattr(commands, "fit", broken)
        monkeypatch.setattr(commands, "imported", broken)
        words = [command] if command == "example" else [command, "t.csv"]
        if fault == "1 / 0":
            with pytest.raises(ZeroDivisionError):
                run(*words)
            return
        code, _, error = run(*words)
        assert code == 2
        assert error.endswith("(`--traceback` shows where this is.)\n")
        with pytest.raises(ValueError, match=r"five|broadcast"):
            run(*words, "--traceback")

    def test_foreign_errors_pass_through(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(commands, "fit", lambda *_, **__: statistics.NormalDist(0, -1))
        with pytest.raises(ValueError, match="sigma must be non-negative"):
            run("fit", "t.csv")
        with pytest.raises(SystemExit, match="2"):
            run("fit", "t.csv", "--traceback", "5")

    def test_an_interruption_is_said(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(commands, "fit", interrupted)
        code, _, error = run("example")
        assert (code, error) == (130, "Interrupted: there is no result.\n")

    def test_an_interruption_of_the_report_leaves_the_model(
        self, answered: tuple[TabularModel, str], run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pytest.importorskip("plotly")

        def interrupted(*_: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(commands, "fit", lambda *_, **__: answered[0])
        monkeypatch.setattr(TabularModel, "report", interrupted)
        code, _, error = run("fit", "t.csv", "--save", "m", "--report", "r.html")
        assert (code, error) == (130, "Interrupted: the model is saved, but no report.\n")
        assert len(joblib.load("m").predict("t.csv")) == N

    @pytest.mark.parametrize(
        ("words", "match"),
        [
            (["--minutes", "20s"], "argument --minutes: must be a positive number, but got '20s'"),
            (["--seconds", "0"], "argument --seconds: must be a positive number, but got '0'"),
            (["--seconds", "9", "--minutes", "1"], "--minutes: not allowed with argument --sec"),
            (["--hours", "1"], "error: unrecognized arguments: --hours 1"),
        ],
    )
    @pytest.mark.parametrize("command", [["fit", "t.csv"], ["example"]])
    def test_a_wrong_argument_shows_the_usage_of_its_command(
        self,
        command: list[str],
        words: list[str],
        match: str,
        run: Run,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        with pytest.raises(SystemExit, match="2"):
            run(*command, *words)
        error = capsys.readouterr().err
        assert match in error
        assert error.startswith(f"usage: python -m optuna_daub {command[0]} ")

    @pytest.mark.parametrize("words", [["--minutes", "1.5"], ["--seconds", "90"]])
    def test_time_is_given_in_minutes_or_seconds(
        self, words: list[str], run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        given: list[float] = []
        monkeypatch.setattr(commands, "fit", lambda *_, seconds, say: given.append(seconds))
        assert run("example", "--rows", "1000", *words)[0] == 0
        assert given == [90]

    def test_several_lists_are_one(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        given: list[Any] = []

        def noted(*_: Any, ignore: Any, models: Any, **__: Any) -> None:
            given.append((ignore, models))
            raise KeyboardInterrupt

        monkeypatch.setattr(commands, "fit", noted)
        models = "--models", "linear", "--models", "xgboost"
        run("fit", "t.csv", "--ignore", "a", "b", "--ignore", "c", *models)
        run("fit", "t.csv")
        assert given == [(["a", "b", "c"], ["linear", "xgboost"]), ([], None)]

    def test_help_names_the_commands(self, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit, match=r"0"):
            run("--help")
        assert "fit" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ecoli", "letter", "adult"])
def test_a_real_table_ends_in_a_model_better_than_a_guess(
    name: str, shared: Callable[[str], Path], run: Run
) -> None:
    """Tables of 5, 26 and 2 classes, and of 327 to 48,842 rows."""
    path = shared(f"data/{name}.parquet")
    options = ["--minutes", "0.05", "--save", "m"]
    if name == "letter":  # whose numbers of 26 letters would be taken for amounts
        options += ["--task", "classification"]
    if name == "ecoli":  # one in a process of its own, which imports everything first
        command = [sys.executable, "-W", "error", "-m", "optuna_daub", "fit", str(path)]
        done = subprocess.run(
            command + options, capture_output=True, text=True, timeout=200, check=False
        )
        code, error = done.returncode, done.stderr
    else:
        code, _, error = run("fit", str(path), *options)
    assert code == 0, error
    model = joblib.load("m")
    assert model.task == "classification"
    assert model.score > model.found.guess
    assert model.found.failures == ()
    rows = json.loads(shared("data/META.json").read_text())[name]["rows"]
    assert len(model.predict(path)) == rows


def test_an_interrupted_save_leaves_the_earlier_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = told(table(60), seconds=0.001)
    (tmp_path / "link").symlink_to(tmp_path / "m")
    model.save(tmp_path / "link")
    before = (tmp_path / "m").read_bytes()

    def interrupted(value: Any, path: Path) -> None:
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(joblib, "dump", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.save(tmp_path / "link")
    assert (tmp_path / "m").read_bytes() == before
    assert {file.name for file in tmp_path.iterdir()} == {"m", "link"}
    commands._check_path("--save", tmp_path / "link")
    (tmp_path / "m").unlink()
    commands._check_path("--save", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert hash(model) == hash(model)


def test_interrupted_predictions_leave_the_earlier_file(
    answered: tuple[TabularModel, str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered[0].save("m")
    Path("out.csv").write_text("before")

    def interrupted(frame: Any, path: Path, **options: Any) -> None:
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(pandas.DataFrame, "to_csv", interrupted)
    assert run("predict", "t.csv", "--model", "m", "--out", "out.csv")[0] == 130
    assert Path("out.csv").read_text() == "before"
    assert not [*Path().glob("*part*")]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.zip"])
def test_predictions_are_compressed_as_their_name_says(
    ending: str, answered: tuple[TabularModel, str], run: Run
) -> None:
    answered[0].save("m")
    out = Path(f"out.{ending}")
    out.touch(mode=0o600)
    assert run("predict", "t.csv", "--model", "m", "--out", str(out))[0] == 0
    assert len(pandas.read_csv(out)) == N
    assert os.name == "nt" or out.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="there are no names for pipes")
def test_predictions_can_be_written_to_a_pipe(
    answered: tuple[TabularModel, str], run: Run
) -> None:
    answered[0].save("m")
    reading, writing = os.pipe()
    code, _, error = run("predict", "t.csv", "--model", "m", "--out", f"/dev/fd/{writing}")
    os.close(writing)
    with open(reading) as lines:
        assert (code, error, lines.readline()) == (0, "", "target\n")


def test_shares_of_many_classes_are_written_without_a_warning(
    answered: tuple[TabularModel, str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = np.array([f"class {i}" for i in range(150)], object)
    replace(answered[0], classes=names).save("m")
    monkeypatch.setattr(TabularModel, "predict_proba", lambda *_, **__: np.ones((N, 150)) / 150)
    code, _, error = run("predict", "t.csv", "--model", "m", "--proba", "--out", "out.csv")
    assert (code, error) == (0, "")
    assert pandas.read_csv("out.csv").shape == (N, 151)


def test_names_that_a_booster_makes_up_cause_no_warning(
    answered: tuple[TabularModel, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """LightGBM before 4.7 does, and then misses them."""
    model, frame = answered[0], table()

    def predict(self: Any, X: Any) -> Any:
        warnings.warn(
            "X does not have valid feature names, but LGBM was", UserWarning, stacklevel=1
        )
        return np.zeros(len(X), int)

    monkeypatch.setattr(type(model.pipeline), "predict", predict)
    assert {*model.predict(frame)} == {model.classes[0]}


def test_after_an_interruption_no_training_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch system waits some seconds only."""
    fitted: list[int] = []

    def interrupted(study: optuna.Study, objective: Any, **options: Any) -> None:
        study.optimize(objective, n_trials=3)
        monkeypatch.setattr(Search, "build", lambda *_: fitted.append(1))
        raise KeyboardInterrupt

    monkeypatch.setattr(host, "optimize", interrupted)
    model, said = told(table(2_500), seconds=600.0, models=["linear"])
    assert "Interrupted: the best model so far is taken." in said
    assert fitted == []
    assert model.found.n_fitted == model.found.best.size


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM that can be caught")
def test_sigterm_ends_the_search_with_the_best_model(tmp_path: Path) -> None:
    table().to_csv(tmp_path / "t.csv", index=False)
    words = ["-m", "optuna_daub", "fit", "t.csv", "--models", "linear", "--minutes", "9"]
    with subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    ) as job:
        assert job.stdout is not None
        next(line for line in job.stdout if " s   accuracy" in line)
        job.terminate()
        rest = job.stdout.read()
    assert job.returncode == 0
    assert "Interrupted: the best model so far is taken." in rest
    assert isinstance(joblib.load(tmp_path / "model.joblib"), TabularModel)


def test_a_file_is_read_in_the_units_and_labels_of_its_fit(tmp_path: Path) -> None:
    shares = np.random.default_rng(0).integers(1, 90, 80)
    lines = [f"{share},5 %;{'5,5 %' if share > 45 else '7,0 %'}" for share in shares]
    (tmp_path / "t.csv").write_text("\n".join(["share;y", *lines]))
    model, _ = told(tmp_path / "t.csv", "y", task="classification")
    (tmp_path / "new.csv").write_text("share;x\n1,5 %;0\n88,5 %;0\n")
    assert model.predict(tmp_path / "new.csv").tolist() == ["7,0 %", "5,5 %"]
    (tmp_path / "new.csv").write_text("share;x\n0,015;0\n88,5 %;0\n")
    with pytest.warns(
        UserWarning, match=r"`share` was a column of numbers in % in `fit`, but now 1"
    ):
        model.predict(tmp_path / "new.csv")


def test_a_row_of_totals_is_said() -> None:
    frame = table()
    frame.loc[N] = [frame.a.sum(), 0, 0, "Total", "yes"]
    model, said = told(frame)
    note = "The last row is the total of the others (`colour`, `a`): take it out of the table."
    assert note in model.notes
    assert note in said


def test_a_command_says_each_warning_once_and_without_a_line_of_code(
    answered: tuple[TabularModel, str], run: Run
) -> None:
    answered[0].save("m")
    table(3).assign(colour="violet").to_csv("new.csv", index=False)
    code, said, error = run("predict", "new.csv", "--model", "m", "--proba")
    assert (code, said.count("\n")) == (0, 4)
    assert error.startswith("`colour` should have the words of `fit`, but 3 of 3 are new")
    assert error.count("\n") == 1


class Gone:
    """A class of a package that is not installed where the model is loaded."""

    def __reduce__(self) -> Any:
        return __import__, ("a_package_that_is_gone",)


def test_a_package_that_a_model_needs_is_named(run: Run) -> None:
    joblib.dump(Gone(), "m")
    code, _, error = run("predict", "t.csv", "--model", "m")
    assert code == 2
    assert "m cannot be loaded: ModuleNotFoundError: No module named 'a_package_that_is" in error


def test_predictions_that_the_output_cannot_show_are_not_changed(
    answered: tuple[TabularModel, str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = replace(answered[0], classes=np.array(["n€", "Ł"], object))
    model.save("m")
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(BytesIO(), "cp1252"))
    code, _, error = run("predict", "t.csv", "--model", "m")
    assert (code, error.count("\n")) == (2, 1)
    assert "must be printed in cp1252, which has no '\\u0141': `--out` writes" in error
    assert run("predict", "t.csv", "--model", "m", "--out", "out.csv")[0] == 0
    assert {*pandas.read_csv("out.csv").target} == {"n€", "Ł"}


def test_a_storage_that_cannot_be_opened_is_said_before_the_table_is_read() -> None:
    with pytest.raises(ValueError, match=r"`storage` must be a URL"):
        fit("absent.csv", "target", storage="sqlite:////no/where.db")


def test_the_same_seed_makes_the_same_numbers_of_text() -> None:
    """Neither reads nor moves the state of numpy's global generator."""
    frame = table().assign(colour=[f"a sentence with {i} words" for i in range(N)])
    before = np.random.get_state()[1]
    one, other = (told(frame)[0].pipeline[0].transform(frame) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(np.random.get_state()[1], before)

"""The quickstart's output: one line while it runs, a table at the end."""

from __future__ import annotations

import shutil
import sys

import optuna

from optuna_daub import best_learner
from optuna_daub import learning_curves
from optuna_daub.study import LearnerCurve


def show_progress(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
    """Print the leading learner: one line that changes, or one per change outside a terminal."""
    leader = best_learner(study)
    if leader is None:
        return
    line = (
        f"{leader.params['learner']} leads: {leader.size:,} examples, score "
        f"{leader.score:.4f} | spent {leader.examples:,} examples, {leader.seconds:,.1f} s"
    )
    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns - 1
        print(f"\r{line[:width]:<{width}}", end="", flush=True)
    elif trial.params == leader.params:
        print(line, flush=True)


def print_result(study: optuna.Study, n_train: int) -> None:
    """Print all learners, the best first, and the cost next to training all on all the data."""
    leader = best_learner(study)
    if leader is None:
        print("No learner has a score yet.")
        return
    curves = sorted(learning_curves(study), key=_rank)
    print(f"\n\n{'':>3} {'learner':<19}{'examples':>9}{'score':>9}{'bound':>9}  state")
    for curve in curves:
        name = curve.params.get("learner", "?")
        state = curve.reason if curve.state == "dropped" else curve.state
        numbers = f"{curve.size:>9,}{_number(curve.score)}{_number(curve.bound)}"
        print(f"{curve.learner:>3} {name:<19}{numbers}  {state}")
    verb = "is" if leader.is_final else "leads so far:"
    print(f"\n{leader.params['learner']} {verb} {leader.reason}")
    if leader.promise:
        print(leader.promise)
    print(f"\n{'':<29}{'examples':>11}{'seconds':>13}")
    print(f"{'this study':<29}{leader.examples:>11,}{leader.seconds:>13,.1f}")
    if leader.is_final:
        all_on_all = f"all {len(curves)} on all the data"
        seconds = sum(_seconds_on(n_train, curve) for curve in curves)
        print(f"{all_on_all:<29}{len(curves) * n_train:>11,}{seconds:>11,.0f} *")
        print(
            "* an estimate: each learner's seconds at its size above, scaled up in proportion\n"
            "  to the examples; too low for learners that slow down faster, like kernel machines"
        )


def _rank(curve: LearnerCurve) -> tuple[bool, bool, int, float]:
    return (curve.state != "best", curve.state == "dropped", -curve.size, -(curve.score or 0.0))


def _number(value: float | None) -> str:
    return f"{'-':>9}" if value is None else f"{value:>9.4f}"


def _seconds_on(n_train: int, curve: LearnerCurve) -> float:
    """Return the seconds of a learner on all the data, in proportion to its last training.

    A power law fitted to its few short times would increase their noise.
    """
    last = curve.observations[-1] if curve.observations else None
    return 0.0 if last is None else (last.seconds or 0.0) * n_train / last.size

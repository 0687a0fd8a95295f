"""Train and validate on only as many examples as a stopping rule needs.

    python examples/adaptive_boosting.py

First, boosting draws in each round a sample from a large table, with three rules for its size.
Then a nearest-neighbour classifier, which predicts slowly, is validated on a sample.
"""

import os
import time

import numpy as np
from sklearn.ensemble import AdaBoostClassifier
from sklearn.neighbors import KNeighborsClassifier

from optuna_daub.learners import AdaptiveSamplingBoostClassifier
from optuna_daub.learners import sequential_score


N_ROWS = 20_000 if "OPTUNA_DAUB_SMOKE" in os.environ else 1_000_000


def survey(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return answers to ten questions (five choices each) and whether each person agrees."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (n_rows, 10)).astype(np.float32)
    leaning = (X[:, 0] == 2) * 2.0 + (X[:, 1] >= 3) * 1.5 + (X[:, 2] == 0) + (X[:, 3] == 4)
    return X, leaning + rng.normal(0.0, 0.8, n_rows) > 1.7


def boost(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> None:
    print(f"{'rule':<12}{'examples a round':>17}{'seconds':>9}{'accuracy':>10}")
    for rule in ("massart", "chernoff", "madaboost"):
        model = AdaptiveSamplingBoostClassifier(
            rule, categorical_features=list(range(10)), random_state=0
        )
        begin = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - begin
        drawn = model.n_samples_per_round_.mean()
        print(f"{rule:<12}{drawn:>17,.0f}{seconds:>9.2f}{model.score(X_test, y_test):>10.4f}")
    begin = time.perf_counter()
    plain = AdaBoostClassifier(n_estimators=10, random_state=0).fit(X, y)
    seconds = time.perf_counter() - begin
    print(f"{'AdaBoost':<12}{len(X):>17,}{seconds:>9.2f}{plain.score(X_test, y_test):>10.4f}")


def validate(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> None:
    neighbours = KNeighborsClassifier().fit(X[:20_000], y[:20_000])
    print(f"\n{'validation':<14}{'examples':>10}{'seconds':>9}{'accuracy':>10}")
    begin = time.perf_counter()
    accuracy = neighbours.score(X_test, y_test)
    seconds = time.perf_counter() - begin
    print(f"{'all':<14}{len(X_test):>10,}{seconds:>9.2f}{accuracy:>10.4f}")
    for epsilon in (0.02, 0.01):
        scorer = sequential_score(epsilon=epsilon, delta=0.05)
        begin = time.perf_counter()
        found = scorer.estimate(neighbours, X_test, y_test)
        seconds = time.perf_counter() - begin
        name = f"within {epsilon}"
        print(f"{name:<14}{found.n_samples:>10,}{seconds:>9.2f}{found.accuracy:>10.4f}")


if __name__ == "__main__":
    training, test = survey(N_ROWS, seed=0), survey(N_ROWS // 20, seed=1)
    boost(*training, *test)
    validate(*training, *test)

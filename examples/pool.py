"""A pool of 41 learners as one Optuna search space.

`build` suggests a learner by name, and then its hyperparameters. Each hyperparameter has one
value, so the study records it, and no sampler has to choose. To search among values instead, give
a parameter a range in `_suggested`. The names are those of the recorded learning curves in the
benchmarks. Every random state is 0. LightGBM and XGBoost run on one core. With OMP_NUM_THREADS=1
in the environment, all other learners do so too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import optuna
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import AdaBoostClassifier
from sklearn.ensemble import BaggingClassifier
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Perceptron
from sklearn.linear_model import RidgeClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import BernoulliNB
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neighbors import NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree import ExtraTreeClassifier


INSTALL = "pip install 'optuna-daub[boosters]'"


def lightgbm(**params: Any) -> Any:
    """Return an unfitted LightGBM classifier."""
    try:
        from lightgbm import LGBMClassifier
    except ImportError as error:
        raise ImportError(f"LightGBM is needed for this learner: {INSTALL}") from error
    return LGBMClassifier(n_jobs=1, verbose=-1, **params)


def xgboost(**params: Any) -> Any:
    """Return an unfitted XGBoost classifier."""
    try:
        from xgboost import XGBClassifier
    except ImportError as error:
        raise ImportError(f"XGBoost is needed for this learner: {INSTALL}") from error
    return XGBClassifier(n_jobs=1, **params)


def nystroem_logistic(n_components: int) -> Any:
    """Return a logistic regression on an approximate kernel."""
    return make_pipeline(Nystroem(n_components=n_components), LogisticRegression())


def mlp(layers: int, width: int, max_iter: int) -> Any:
    """Return a multi-layer perceptron with hidden layers of equal width."""
    return MLPClassifier(hidden_layer_sizes=(width,) * layers, max_iter=max_iter)


def scaled(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return `make` with its features standardised first."""
    return lambda **params: make_pipeline(StandardScaler(), make(**params))


POOL: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "tree": (DecisionTreeClassifier, {}),
    "tree_leaf2": (DecisionTreeClassifier, {"min_samples_leaf": 2}),
    "tree_leaf4_pruned": (DecisionTreeClassifier, {"min_samples_leaf": 4, "ccp_alpha": 1e-4}),
    "tree_leaf25": (DecisionTreeClassifier, {"min_samples_leaf": 25}),
    "tree_depth5": (DecisionTreeClassifier, {"max_depth": 5}),
    "random_tree": (ExtraTreeClassifier, {}),
    "stump": (DecisionTreeClassifier, {"max_depth": 1}),
    "zero_r": (DummyClassifier, {"strategy": "most_frequent"}),
    "gaussian_nb": (GaussianNB, {}),
    "bernoulli_nb": (scaled(BernoulliNB), {}),
    "logistic": (scaled(LogisticRegression), {"C": 1.0, "max_iter": 300}),
    "logistic_c001": (scaled(LogisticRegression), {"C": 0.001, "max_iter": 300}),
    "sgd_hinge": (scaled(SGDClassifier), {"loss": "hinge"}),
    "sgd_log": (scaled(SGDClassifier), {"loss": "log_loss"}),
    "perceptron": (scaled(Perceptron), {}),
    "ridge": (scaled(RidgeClassifier), {}),
    "lda": (scaled(LinearDiscriminantAnalysis), {}),
    "qda": (scaled(QuadraticDiscriminantAnalysis), {"reg_param": 1e-3}),
    "centroid": (scaled(NearestCentroid), {}),
    "knn1": (scaled(KNeighborsClassifier), {"n_neighbors": 1}),
    "knn5": (scaled(KNeighborsClassifier), {"n_neighbors": 5}),
    "knn10": (scaled(KNeighborsClassifier), {"n_neighbors": 10}),
    "knn25": (scaled(KNeighborsClassifier), {"n_neighbors": 25}),
    "svc_rbf": (scaled(SVC), {"gamma": 0.01}),
    "svc_rbf_auto": (scaled(SVC), {"gamma": "scale"}),
    "svc_poly2": (scaled(SVC), {"kernel": "poly", "degree": 2}),
    "linear_svc": (scaled(LinearSVC), {}),
    "nystroem_logistic": (scaled(nystroem_logistic), {"n_components": 200}),
    "mlp100": (scaled(mlp), {"layers": 1, "width": 100, "max_iter": 30}),
    "mlp50x50": (scaled(mlp), {"layers": 2, "width": 50, "max_iter": 30}),
    "rf_d10_5": (RandomForestClassifier, {"max_depth": 10, "n_estimators": 5}),
    "rf_d10_10": (RandomForestClassifier, {"max_depth": 10, "n_estimators": 10}),
    "rf_d20_5": (RandomForestClassifier, {"max_depth": 20, "n_estimators": 5}),
    "rf_100": (RandomForestClassifier, {"n_estimators": 100}),
    "extra_trees_100": (ExtraTreesClassifier, {"n_estimators": 100}),
    "bagging10": (BaggingClassifier, {"n_estimators": 10}),
    "adaboost50": (AdaBoostClassifier, {"n_estimators": 50}),
    "hist_gb": (HistGradientBoostingClassifier, {}),
    "lgbm100": (lightgbm, {"n_estimators": 100}),
    "lgbm300_127": (lightgbm, {"n_estimators": 300, "num_leaves": 127, "learning_rate": 0.05}),
    "xgb100": (xgboost, {"n_estimators": 100}),
}


def build(trial: optuna.Trial) -> Any:
    """Return the unfitted estimator of a trial."""
    learner = trial.suggest_categorical("learner", list(POOL))
    make, settings = POOL[learner]
    estimator = make(
        **{name: _suggested(trial, f"{learner}.{name}", value) for name, value in settings.items()}
    )
    seeds = [name for name in estimator.get_params() if name.endswith("random_state")]
    return estimator.set_params(**dict.fromkeys(seeds, 0))


def _suggested(trial: optuna.Trial, name: str, value: Any) -> Any:
    """Suggest a hyperparameter that has one value."""
    if isinstance(value, int):
        return trial.suggest_int(name, value, value)
    if isinstance(value, float):
        return trial.suggest_float(name, value, value)
    return trial.suggest_categorical(name, [value])

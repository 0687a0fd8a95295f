"""Pictures of a study, in the manner of `optuna.visualization`, drawn by plotly.

`optuna_daub.visualization.matplotlib` has the same functions drawn by matplotlib.
"""

from optuna_daub.visualization._allocations import plot_allocations as plot_allocations
from optuna_daub.visualization._learning_curves import plot_learning_curves as plot_learning_curves
from optuna_daub.visualization._progress import ProgressBar as ProgressBar
from optuna_daub.visualization._sample_agreement import (
    plot_sample_agreement as plot_sample_agreement,
)
from optuna_daub.visualization._search_history import plot_search_history as plot_search_history
from optuna_daub.visualization._upper_bounds import plot_upper_bounds as plot_upper_bounds

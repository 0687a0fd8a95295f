"""Pictures of a study, in the manner of `optuna.visualization`, drawn by plotly.

`optuna_daub.visualization.matplotlib` has the same functions drawn by matplotlib.
"""

from optuna_daub.visualization._plotly import plot_allocations as plot_allocations
from optuna_daub.visualization._plotly import plot_learning_curves as plot_learning_curves
from optuna_daub.visualization._plotly import plot_search_history as plot_search_history
from optuna_daub.visualization._plotly import plot_upper_bounds as plot_upper_bounds
from optuna_daub.visualization._progress import ProgressBar as ProgressBar

"""A scaler of the columns of dense and of sparse tables."""

from __future__ import annotations

from typing import Any

from scipy.sparse import issparse
from sklearn.preprocessing import StandardScaler


class Scaler(StandardScaler):  # type: ignore[misc]
    """Scaler that also centres columns, except sparse ones: centring would make them dense.

    >>> from scipy.sparse import csr_matrix
    >>> Scaler().fit_transform([[1.0], [3.0]]).ravel()
    array([-1.,  1.])
    >>> Scaler().fit_transform(csr_matrix([[1.0], [3.0]])).toarray().ravel()
    array([1., 3.])
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Scaler:
        """Learn the scales of the columns, and of a dense table the means."""
        self.with_mean = not issparse(X)
        super().fit(X, y, sample_weight)
        return self

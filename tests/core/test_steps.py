"""Step rules: the size that a learner is trained on next."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from optuna_daub.core import next_of_grid
from optuna_daub.core.steps import nearest
from tests.strategies import grids
from tests.strategies import learning_curves


class TestNextOfGrid:
    @given(data=st.data(), sizes=grids())
    def test_is_the_smallest_size_above(self, data: st.DataObject, sizes: tuple[int, ...]) -> None:
        seen = data.draw(learning_curves(0, sizes).filter(lambda curve: curve.size < sizes[-1]))
        assert next_of_grid(seen, sizes) == min(n for n in sizes if n > seen.size)


class TestNearest:
    @given(sizes=grids(), goal=st.floats(0.1, 1e4))
    def test_no_other_size_has_a_ratio_nearer_to_1(
        self, sizes: tuple[int, ...], goal: float
    ) -> None:
        found = nearest(sizes, goal)
        ratios = {size: max(size / goal, goal / size) for size in sizes}
        assert ratios[found] <= min(ratios.values()) * (1 + 1e-12)

    def test_the_smaller_of_two_as_near(self) -> None:
        assert nearest((100, 400), 200) == 100

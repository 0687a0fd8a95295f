from typing import Any
from typing import NamedTuple


PRICE = 0.008


class Terms(NamedTuple):
    sizes: Any
    forecaster: Any
    cost: Any
    price: float


def decide(pool, terms):
    raise NotImplementedError


def explain(pool, terms, learner):
    raise NotImplementedError

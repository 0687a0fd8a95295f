"""Values that never change, and remember answers about themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from typing import TypeVar


_Value = TypeVar("_Value")


class Remembers:
    """A value that never changes and so keeps the answers of rules."""

    __slots__ = ()

    _derived: dict[Any, Any]

    def once(self, rule: Callable[..., _Value], *arguments: Any) -> _Value:
        """Return `rule(self, *arguments)`, asked only once.

        Args:
            rule: a function of this value and the arguments alone.
            arguments: what else the rule is given; hashable.
        """
        question = rule, *arguments
        if question not in self._derived:
            self._derived[question] = rule(self, *arguments)
        value: _Value = self._derived[question]
        return value

"""What a figure is, and how it is measured: ours and theirs in turn, in one run, as a ratio.

A figure is a generator function in a module ``figures_*.py``, marked with ``@figure``. It sets up,
yields two functions that each do one round and return its cost in seconds, and clears up. Rounds
alternate, so that whatever else the machine does falls on both; the median of the rounds' ratios is
the figure. Nothing here fails a test: a number that misses its goal is printed, and a person looks.
"""

import importlib
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Round: TypeAlias = Callable[[], float]
"""Does one round and returns its cost in seconds."""
Arranged: TypeAlias = Callable[[], Iterator[tuple[Round, Round]]]


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured ratio and its goal."""

    name: str
    goal: float | None
    """None where nobody can say what it ought to be: printed to be compared with itself."""
    at_least: bool
    """Whether the ratio should be at least the goal; else at most."""
    rounds: int
    arrange: Arranged

    def measure(self, quick: bool) -> float:
        """Return the median of the rounds' ratios, the first round not counted."""
        rounds = max(3, self.rounds // 5) if quick else self.rounds
        with contextmanager(self.arrange)() as (ours, theirs):
            ours(), theirs()  # caches, imports, first growth
            ratios = [ours() / theirs() for _ in range(rounds)]
        return statistics.median(ratios)

    def held(self, ratio: float) -> bool:
        """Tell whether ``ratio`` reaches the goal, if there is one."""
        if self.goal is None:
            return True
        return ratio >= self.goal if self.at_least else ratio <= self.goal


_figures: list[Figure] = []


def figure(
    name: str, *, at_most: float | None = None, at_least: float | None = None, rounds: int = 25
) -> Callable[[Arranged], Arranged]:
    """Make a figure of a generator that yields what is ours and what it is measured against.

    Args:
        name: What is printed.
        at_most: The goal of a cost: ours divided by theirs.
        at_least: The goal of a speed: theirs divided by ours, in seconds per thing done. Without
            either there is no goal.
        rounds: How often each is done; a fifth of it with ``--quick``.
    """

    def mark(arrange: Arranged) -> Arranged:
        goal = at_most if at_most is not None else at_least

        def turned() -> Iterator[tuple[Round, Round]]:
            for ours, theirs in arrange():
                yield (ours, theirs) if at_least is None else (theirs, ours)

        _figures.append(Figure(name, goal, at_least is not None, rounds, turned))
        return arrange

    return mark


def collected() -> list[Figure]:
    """Return the figures of every module ``figures_*.py`` beside this one."""
    for each in sorted(Path(__file__).parent.glob("figures_*.py")):
        importlib.import_module(f"benchmarks.{each.stem}")
    return _figures

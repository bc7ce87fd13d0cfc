"""Measure: ``python tests/benchmarks/run.py [--quick] [WORD …]``.

Prints one line per figure, ``name  ratio  goal  held|missed``; WORDs choose figures by name.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.frame import collected


def main(arguments: list[str]) -> None:
    """Measure the figures whose name has one of the given words, or all."""
    words = [each for each in arguments if not each.startswith("--")]
    chosen = [each for each in collected() if not words or any(word in each.name for word in words)]
    width = max((len(each.name) for each in chosen), default=0)
    for each in chosen:
        ratio = each.measure(quick="--quick" in arguments)
        goal = "" if each.goal is None else f"{'>=' if each.at_least else '<='} {each.goal:g}"
        held = "no target" if each.goal is None else "held" if each.held(ratio) else "missed"
        print(f"{each.name:<{width}}  {ratio:6.2f}  {goal:>7}  {held}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

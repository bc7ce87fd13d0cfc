"""For tests of agents: loops whose clock jumps, orders that a seed decides, rooms that crash."""

from postroom_runtime.testing.crashing import CrashingStorage, KernelDied
from postroom_runtime.testing.seeded import SeededLoop, run_seeded
from postroom_runtime.testing.stories import journal, story
from postroom_runtime.testing.virtual import VirtualClockLoop, run_virtual, virtual_now

__all__ = [
    "CrashingStorage",
    "KernelDied",
    "SeededLoop",
    "VirtualClockLoop",
    "journal",
    "run_seeded",
    "run_virtual",
    "story",
    "virtual_now",
]

"""The mind of one run, and what it has spent that no stored turn tells of yet."""

from postroom_runtime.contracts.turn import Usage
from postroom_runtime.models.model import Mind, Model
from postroom_runtime.stepper.step import Host

ONE = Usage(requests=1)


class Asking:
    """Whom a run asks. Each request is announced before it is made and booked with its turn.

    What is announced stands in ``SessionState.unbooked``, so that several sessions that ask at the
    same time never spend more than their room allows.

    Args:
        host: The session.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._mind: tuple[Model, Mind] | None = None
        self._left = Usage()
        """What minds that were let go still owed."""

    def mind(self) -> Mind:
        """Return the mind of the model as defined now."""
        model = self._host.model()
        if self._mind is None or self._mind[0] is not model:
            self._let_go()
            self._mind = (model, model.begin(self._host.state.id))
        return self._mind[1]

    @property
    def left(self) -> Usage:
        """What minds before the present one spent for nothing; no thought of this one tells it."""
        return self._left

    @property
    def owed(self) -> Usage:
        """What was spent on requests that gave no thought."""
        return self._left + (self._mind[1].owed if self._mind is not None else Usage())

    def announce(self) -> None:
        """Count the request that is about to be made."""
        self._host.state.unbooked = self.owed + ONE

    def was_cut(self) -> None:
        """Count what the request that was cut has cost."""
        self._host.state.unbooked = self.owed

    def booked(self) -> None:
        """All that was spent is stored now."""
        self._left = Usage()
        self._host.state.unbooked = Usage()

    def close(self) -> None:
        """The run is over."""
        self._let_go()
        self.booked()

    def _let_go(self) -> None:
        if self._mind is not None:
            self._left = self.owed
            self._mind[1].close()
            self._mind = None

"""A schedule of the sets' radii, as torch's schedulers are of the learning rate."""

from collections.abc import Callable

from adafw import checks
from adafw.torch.optimizers import SFW
from adafw.torch.typing import Packed


class RadiusSchedule:
    """Sets the radii of all sets of an `SFW` to factor(t) times their own, t counting `step()`s.

    Where the radius shrinks, weights outside go on by x <- (1 - gamma) x + gamma v, so that their
    excess shrinks by 1 - gamma a step. `state_dict` and `load_state_dict` as torch's schedulers.
    """

    def __init__(self, optimizer: SFW, factor: Callable[[int], float]) -> None:
        if not isinstance(optimizer, SFW):
            raise TypeError(
                f"optimizer must be an SFW, got {type(optimizer).__name__}; Muon, Lion and Signum "
                "have the radius a / weight_decay, which may be changed in their groups."
            )
        self.optimizer, self.factor, self.t = optimizer, factor, 0
        self._set()

    def step(self) -> None:
        """To be called after `optimizer.step()`."""
        self.t += 1
        self._set()

    def _set(self) -> None:
        value = checks.real(float(self.factor(self.t)), "factor(t)", 0, above=True)
        for group in self.optimizer.param_groups:
            group["radius_scale"] = value

    def state_dict(self) -> Packed:
        """The count of steps."""
        return {"t": self.t}

    def load_state_dict(self, state_dict: Packed) -> None:
        """Goes on from a saved count."""
        self.t = int(state_dict["t"])
        self._set()

"""How many blocks an SM holds at once: the rules of NVIDIA's occupancy calculator (`cuda_occupancy.h`)."""

from __future__ import annotations

from ..data_classes import dataclass
from .gpus import Sm
from .work import Work


@dataclass(frozen=True)
class Occupancy:
    """Blocks of an SM, and how many each resource has room for."""

    blocks: int
    fits: dict[str, int]

    @property
    def limit(self) -> str:
        """The scarcest resource."""
        return min(self.fits, key=lambda name: self.fits[name])


def occupancy(work: Work, sm: Sm) -> Occupancy:
    """Raises ValueError where not even one block fits."""
    fits = {"blocks": sm.blocks, "threads": sm.threads // (32 * work.warps)}
    if work.registers:
        # Registers are given to warps in units, each scheduler has its part of them.
        each = _round_up(32 * work.registers, sm.REGISTER_UNIT)
        fits["registers"] = sm.SCHEDULERS * (sm.registers // sm.SCHEDULERS // each) // work.warps
    if work.shared:
        fits["shared memory"] = sm.shared // _round_up(work.shared + sm.SHARED_RESERVED, sm.SHARED_UNIT)
    found = Occupancy(min(fits.values()), fits)
    if found.blocks == 0:
        raise ValueError(
            f"kernel '{work.kernel}' has blocks of {work.threads} threads, {work.registers} registers and "
            f"{work.shared} bytes of shared memory; an SM has too little: {found.limit}"
        )
    return found


def _round_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit

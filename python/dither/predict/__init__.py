"""How fast a kernel will be on a GPU that is not at hand, as a part of the speed of a copy.

    with dither.profile.record("sim:sm_90a") as runs:
        dither.quantize(x, "nvfp4", amax=a)
    for one in dither.profile.summarize(runs):
        print(predict(of_summary(one), GPUS["H200"]).speed)

A model, not a measurement: docs/prediction.md. `python -m dither profile` prints it.
"""

from .gpus import GPUS, Gpu, find, of_target
from .model import Prediction, predict
from .occupancy import Occupancy, occupancy
from .work import Work, of_summary

__all__ = ["GPUS", "Gpu", "Occupancy", "Prediction", "Work", "find", "occupancy", "of_summary", "of_target", "predict"]

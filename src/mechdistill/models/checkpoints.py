"""One resumable state of a training, in one file that is whole whenever it exists.

The file carries the identity of its run (settings, inputs); a checkpoint of another run is passed
over, so a changed parameter never goes on from weights of the old one.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mechdistill.artifacts import read_tensors, write_tensors
from mechdistill.errors import InputError
from mechdistill.models.optimiser import ScheduledOptimiser


@dataclass(frozen=True)
class Checkpoint:
    """Where the checkpoints of one run lie and which run it is."""

    path: Path
    identity: str
    """Equal for equal results; see `mechdistill.models.identity.run_identity`."""

    def save(
        self, step: int, model: nn.Module, optimiser: ScheduledOptimiser, notes: dict[str, Any]
    ) -> None:
        """Write the state after `step` finished steps; `notes` is what JSON can hold exactly."""
        tensors = {"random": torch.get_rng_state()}
        tensors |= {f"model.{name}": value for name, value in model.state_dict().items()}
        tensors |= {f"optimiser.{name}": value for name, value in optimiser.tensors().items()}
        content = {"identity": self.identity, "step": step, "notes": notes}
        write_tensors(self.path, tensors, {"checkpoint": json.dumps(content)})

    def restore(
        self, model: nn.Module, optimiser: ScheduledOptimiser
    ) -> tuple[int, dict[str, Any]]:
        """Take up the saved state; gives the number of finished steps and the notes.

        Gives (0, {}) and leaves everything as it is where no checkpoint of this run can be read.
        """
        if not self.path.exists():
            return 0, {}
        try:
            tensors, metadata = read_tensors(self.path)
            content = json.loads(metadata["checkpoint"])
        except (InputError, KeyError, ValueError) as error:
            print(f"{self.path} cannot be read, training starts anew: {error}", file=sys.stderr)
            return 0, {}
        if content["identity"] != self.identity:
            print(f"{self.path} belongs to another run, training starts anew", file=sys.stderr)
            return 0, {}
        model.load_state_dict(_below("model.", tensors))
        optimiser.restore(_below("optimiser.", tensors))
        torch.set_rng_state(tensors["random"])
        print(f"training goes on from step {content['step']}", file=sys.stderr)
        return content["step"], content["notes"]

    def discard(self) -> None:
        """Remove the file: its training is finished and saved elsewhere."""
        self.path.unlink(missing_ok=True)


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        name[len(prefix) :]: value for name, value in tensors.items() if name.startswith(prefix)
    }

"""Students whose weights are too large for one GPU: DeepSpeed's ZeRO-3.

Weights, gradients and the optimiser's state are partitioned over the processes and, if wanted, lie
in CPU memory; a layer's weights are whole only while the layer runs. No code of a method needs to
know: weights are used through the modules that hold them, and everything runs within one forward
pass of the wrapped model, so that DeepSpeed sees every use of a weight.

Nothing is compiled: neither DeepSpeed's own Adam, nor what it would exchange data between processes
of one machine with. It installs and runs without a compiler, and no build that was cut off can make
later runs wait.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from mechdistill.artifacts import read_json, write_json
from mechdistill.distil.engine import Part, Update, weighed
from mechdistill.distil.history import Term
from mechdistill.distil.placing import placed
from mechdistill.distil.processes import Process
from mechdistill.distil.trainer import TrainingSettings
from mechdistill.errors import InputError
from mechdistill.models.optimiser import adamw, schedule

T = TypeVar("T")


@dataclass(frozen=True)
class ZeroSettings:
    """The section `distil.deepspeed`."""

    micro_batch: int
    """Sequences of one pass of one process; gradients of a step's passes are accumulated."""
    precision: str
    """Of weights and products: float32, bfloat16 or float16; the optimiser's are float32."""
    offload: bool
    """Whether weights and optimiser lie in CPU memory."""
    gradient_checkpointing: bool
    """Whether what a layer computed is computed again in the backward pass, not kept."""

    @classmethod
    def of(cls, section: Mapping[str, Any] | None) -> ZeroSettings | None:
        """From the parameters' section; None where a student is trained by one plain process."""
        return None if section is None else cls(**section)


class Zero:
    """A model partitioned over processes.

    AdamW updates all weights: Muon needs whole matrices. Rates, clipping and accumulation follow
    the plain trainer, so that both differ by rounding alone.

    Args:
        model: whole, at its initial weights; it is partitioned in place.
        settings: of the engine.
        training: numbers of the training.
        batch_size: sequences of a step, in all processes.
        folder: where the state is kept; not removed at the end, since the result is not saved yet.
        identity: of the run, see `mechdistill.models.checkpoints.Checkpoint`.

    Raises:
        InputError: DeepSpeed is not installed, the precision needs a GPU, or the batch cannot be
            shared out evenly.
    """

    def __init__(
        self,
        model: Any,
        settings: ZeroSettings,
        training: TrainingSettings,
        batch_size: int,
        folder: Path,
        identity: str,
    ) -> None:
        process = Process.here()
        if process is None:
            raise InputError(
                "DeepSpeed trains in processes that torchrun has started, and this is none",
                "start the script train_student.py, which starts torchrun",
            )
        accumulated = _accumulated(batch_size, settings.micro_batch, process.count)
        self._deepspeed = start_deepspeed(settings.precision)
        self._settings, self._training, self._process = settings, training, process
        self._folder, self._identity = folder, identity
        self._accumulated = accumulated
        self.speaks = process.number == 0
        self._saved = self._read_saved()
        self.resumed: list[dict[str, Any]] = []
        """For the record: each time it went on, from where and with what."""
        if settings.gradient_checkpointing:
            # the other kind computes without a graph, and the tap's records would have none
            model.activation_checkpointing_enable({"use_reentrant": False})
        self._root = _Root(model)
        if self._saved and self._saved["processes"] != process.count:
            self._load_weights()
        self._engine, *_ = self._deepspeed.initialize(
            model=self._root,
            optimizer=adamw(self._root.parameters(), training.adamw_learning_rate),
            config=self._configuration(model.config.hidden_size),
        )
        self._device = self._engine.device

    def restore(self) -> tuple[int, dict[str, Any]]:
        """Take up the saved state: all of it, or of another number of processes the weights alone.

        The optimiser's state is then partitioned otherwise, and starts anew.
        """
        if not self._saved:
            return 0, {}
        step, before = self._saved["step"], self._saved["processes"]
        kept = "all" if before == self._process.count else "weights"
        if kept == "all":
            self._engine.load_checkpoint(str(self._folder), tag=self._saved["tag"])
        elif self.speaks:
            print(
                f"step {step}: saved by {before} processes, now {self._process.count}: "
                "weights are taken up, the optimiser's state is not",
                file=sys.stderr,
            )
        self.resumed = [
            *self._saved["resumed"],
            {"step": step, "processes": self._process.count, "kept": kept},
        ]
        return step, self._saved["notes"]

    def save(self, step: int, notes: dict[str, Any]) -> None:
        """See `Engine`. A state counts when the file that names it is written, after all others."""
        tag = f"step{step}-{self._process.count}"
        shutil.rmtree(self._folder / tag, ignore_errors=True) if self.speaks else None
        self._engine.save_checkpoint(str(self._folder), tag=tag, save_latest=False)
        if self.speaks:
            sizes = {path.name: path.stat().st_size for path in (self._folder / tag).iterdir()}
            content = {
                "identity": self._identity,
                "step": step,
                "processes": self._process.count,
                "tag": tag,
                "sizes": sizes,
                "resumed": self.resumed,
                "notes": notes,
            }
            write_json(self._folder / STATE, content)
            for old in self._folder.glob("step*"):
                if old.name != tag:
                    shutil.rmtree(old)

    def discard(self) -> None:
        """Remove what was kept: the training is finished and saved elsewhere."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def parts(self, batch: Sequence[T]) -> list[Sequence[T]]:
        """Every so many-th sequence, in passes: lengths are alike in all processes."""
        own, size = batch[self._process.number :: self._process.count], self._settings.micro_batch
        return [own[start : start + size] for start in range(0, len(own), size)]

    def total(self, amounts: Mapping[str, float]) -> dict[str, float]:
        """See `Engine`."""
        everywhere: list[Any] = [None] * self._process.count
        torch.distributed.all_gather_object(everywhere, dict(amounts))
        names = dict.fromkeys(name for found in everywhere for name in found)
        return {name: sum(found.get(name, 0.0) for found in everywhere) for name in names}

    def place(self, value: T) -> T:
        """See `Engine`."""
        return placed(value, self._device)

    def read(self, work: Callable[[], T]) -> T:
        """See `Engine`."""
        with torch.no_grad():
            return self._within(work)

    def learn(self, part: Part, number: int) -> tuple[Mapping[str, Term], float]:
        """See `Engine`."""
        found: list[Mapping[str, Term]] = []

        def loss_of_part() -> Tensor:
            found.append(part())
            # DeepSpeed takes the mean over processes and passes; shares already add to one
            return weighed(found[0]) * (self._process.count * self._accumulated)

        loss = self._engine(loss_of_part)
        self._engine.backward(loss)
        rate = self._rate(number)
        for group in self._engine.optimizer.param_groups:
            group["lr"] = rate
        self._engine.step()  # changes the weights after the last pass alone
        return found[0], loss.item() / (self._process.count * self._accumulated)

    def update(self, number: int) -> Update | None:
        """See `Engine`; DeepSpeed has changed the weights already."""
        optimizer = self._engine.optimizer
        if getattr(optimizer, "overflow", False):
            if getattr(optimizer, "loss_scale", 1.0) > 1.0:
                return None  # the scale of the loss is lower now
            return Update(float("inf"), 0.0)
        norm = float(self._engine.get_global_grad_norm())
        return Update(norm, self._rate(number))

    def whole_weights(self) -> dict[str, Tensor] | None:
        """The weights in fp32, brought together in the first process's memory; None in others.

        Raises:
            RuntimeError: the optimiser's weights, rounded, are not those that the model runs with.
        """
        from deepspeed.utils import safe_get_full_fp32_param

        found: dict[str, Tensor] = {}
        for name, weight in self._root.model.named_parameters():
            shape = weight.ds_shape  # type: ignore[attr-defined]
            exact = safe_get_full_fp32_param(weight).view(shape)
            with self._deepspeed.zero.GatheredParameters([weight]):
                same = torch.equal(exact.to(weight.dtype).to(weight.device), weight.data)
            if not same:
                raise RuntimeError(f"{name}: what was brought together is not what was trained")
            if self.speaks:
                found[name] = exact.cpu().clone()
        return found if self.speaks else None

    def about(self) -> dict[str, Any]:
        """Processes at the end, and each time that it went on: from where, and with what."""
        return {"processes": self._process.count, "resumed": self.resumed}

    def _within(self, work: Callable[[], T]) -> T:
        found: list[T] = []

        def kept() -> Tensor:
            found.append(work())
            return torch.zeros((), device=self._device)

        self._engine(kept)
        return found[0]

    def _rate(self, number: int) -> float:
        share = schedule(number, self._training.steps, self._training.warmup_steps)
        return self._training.adamw_learning_rate * share

    def _configuration(self, width: int) -> dict[str, Any]:
        aside = {"device": "cpu" if self._settings.offload else "none"}
        return {
            "train_micro_batch_size_per_gpu": self._settings.micro_batch,
            "gradient_accumulation_steps": self._accumulated,
            "gradient_clipping": self._training.clip,
            "bf16": {"enabled": self._settings.precision == "bfloat16"},
            "fp16": {"enabled": self._settings.precision == "float16"},
            "data_types": {"grad_accum_dtype": "fp32"},
            "zero_force_ds_cpu_optimizer": False,  # it would be compiled at its first use
            "zero_optimization": {
                "stage": 3,
                "offload_optimizer": aside,
                "offload_param": aside,
                # vectors stay whole: gains of norms are read outside of their modules
                "stage3_param_persistence_threshold": width,
            },
            "steps_per_print": sys.maxsize,
        }

    def _read_saved(self) -> dict[str, Any]:
        """What the saved state says of itself; {} where there is none of this run that is whole."""
        path = self._folder / STATE
        if not path.exists():
            return {}
        try:
            content = read_json(path)
            state = self._folder / content["tag"]
            whole = all(
                (state / name).stat().st_size == size for name, size in content["sizes"].items()
            )
        except (InputError, KeyError, OSError) as error:
            return self._pass_over(f"cannot be read: {error}")
        if content["identity"] != self._identity:
            return self._pass_over("belongs to another run")
        return content if whole else self._pass_over("is not whole")

    def _pass_over(self, why: str) -> dict[str, Any]:
        if self.speaks:
            print(f"{self._folder} {why}; training starts anew", file=sys.stderr)
        return {}

    def _load_weights(self) -> None:
        """Into the model that is whole yet."""
        from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

        weights = get_fp32_state_dict_from_zero_checkpoint(str(self._folder), self._saved["tag"])
        self._root.load_state_dict(weights, strict=False)
        missing = {name for name, _ in self._root.named_parameters()} - weights.keys()
        if missing:
            raise RuntimeError(f"{self._folder} lacks weights of {', '.join(sorted(missing))}")


STATE = "state.json"


class _Root(nn.Module):
    """The model, and whatever is done with it as its forward pass."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, work: Callable[[], Tensor]) -> Tensor:
        return work()


def start_deepspeed(precision: str) -> Any:
    """The package, with its processes connected.

    Raises:
        InputError: it is not installed, or the precision needs a GPU.
    """
    there = torch.cuda.is_available()
    if precision == "float16" and not there:
        raise InputError(
            "distil.deepspeed.precision is float16, and there is no GPU",
            "run on a machine with a GPU, or set it to bfloat16 or float32",
        )
    if not there:
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    try:
        import deepspeed
    except ImportError as error:
        raise InputError(
            f"distil.deepspeed is given, and the package deepspeed cannot be imported ({error})",
            "install it: make deepspeed; or set distil.deepspeed to null (docs/deepspeed.md)",
        ) from error
    logging.getLogger("DeepSpeed").setLevel(logging.WARNING)
    # it calls names that torch is about to drop, once a layer and step
    warnings.filterwarnings("ignore", category=FutureWarning, module="torch.distributed")
    # processes of one machine exchange data by gloo, not by a module that is compiled at first use
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    if not torch.distributed.is_initialized():
        deepspeed.init_distributed("nccl" if there else "gloo", auto_mpi_discovery=False)
    return deepspeed


def _accumulated(batch_size: int, micro_batch: int, processes: int) -> int:
    """Passes of each process in a step."""
    passes, rest = divmod(batch_size, micro_batch * processes)
    if rest or not passes:
        raise InputError(
            f"a batch of {batch_size} sequences cannot be shared out evenly among {processes} "
            f"processes with passes of {micro_batch}",
            "choose distil.training.batch_size as a multiple of distil.deepspeed.micro_batch times "
            "the number of processes (one a GPU)",
        )
    return passes

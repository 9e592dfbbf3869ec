"""From the residual before the final norm to logits: the norm, the unembedding, the soft cap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mechdistill.models.families import family_of


@dataclass(frozen=True)
class ReadOut:
    """y = g h / s with s = sqrt(mean(h^2) + eps), u = <w, y> of a token's unembedding row w, and
    the logit: u, or c tanh(u / c) in families that cap.
    """

    gain: Tensor
    """g [d]."""
    epsilon: float
    cap: float | None
    """c."""

    @classmethod
    def of(cls, model: Any) -> ReadOut:
        """The model's own; its gain is the parameter itself."""
        adapter = family_of(model)
        gain, epsilon = adapter.final_norm(model)
        return cls(gain, epsilon, adapter.logit_cap(model))

    def frozen(self) -> ReadOut:
        """As it is now, whatever is trained later."""
        return ReadOut(self.gain.detach().clone(), self.epsilon, self.cap)

    def normed(self, residual: Tensor) -> Tensor:
        """y [..., d] of h [..., d]."""
        scale = (residual.square().mean(-1, keepdim=True) + self.epsilon).sqrt()
        return residual / scale * self.gain

    def logits(self, residual: Tensor, rows: Tensor) -> Tensor:
        """Logits [...] of tokens with unembedding rows [..., d], at h [..., d]."""
        return self.capped((self.normed(residual) * rows).sum(-1))

    def capped(self, logits: Tensor) -> Tensor:
        """c tanh(u / c), or u without a cap."""
        return logits if self.cap is None else torch.tanh(logits / self.cap) * self.cap

    def sloped(self, residual: Tensor, rows: Tensor) -> Tensor:
        """Gradients of those logits with respect to y [..., d]: rows times 1 - tanh(u / c)^2."""
        if self.cap is None:
            return rows
        tangent = torch.tanh((self.normed(residual) * rows).sum(-1, keepdim=True) / self.cap)
        return rows * (1 - tangent.square())

    def pair_gradient(self, residual: Tensor, target: Tensor, foil: Tensor) -> Tensor:
        """Gradient at h of a logit less another, of tokens with such rows; all [..., d]."""
        direction = self.sloped(residual, target) - self.sloped(residual, foil)
        return self.through_norm(residual, direction)

    def through_norm(
        self, residual: Tensor, direction: Tensor, *, frozen_scale: bool = False
    ) -> Tensor:
        """Gradient of <v, y> at h; closed form (g v) / s - h <h, g v> / (d s^3).

        Args:
            residual: h [..., d].
            direction: v [..., d].
            frozen_scale: hold s constant (no second term): the product is then linear in h.

        Returns:
            [..., d].
        """
        weighted = self.gain * direction
        scale = (residual.pow(2).mean(-1, keepdim=True) + self.epsilon).sqrt()
        gradient = weighted / scale
        if frozen_scale:
            return gradient
        along = (residual * weighted).sum(-1, keepdim=True)
        return gradient - residual * along / (residual.shape[-1] * scale**3)


def token_rows(model: Any, ids: Tensor) -> Tensor:
    """Unembedding rows [..., d] of token ids [...]; 0 where an id is -1.

    In fp32 at least: what becomes of them are differences of like rows.
    """
    rows: Any = family_of(model).unembedding(model).weight
    taken: Tensor = rows[ids.clamp(min=0)]
    taken = taken.to(torch.promote_types(taken.dtype, torch.float32)) * (ids >= 0)[..., None]
    return taken


def logits_where(
    model: Any, ids: Tensor, at: Tensor | tuple[Tensor, Tensor], **passed: Any
) -> Tensor:
    """Logits [N, V] of some positions alone: with a large vocabulary those of the others would
    cost more time and memory than the layers do.

    Args:
        model: causal language model.
        ids: [B, T].
        at: which, as a bool [B, T] or as rows and positions [N] each.
        passed: on to the layers: a mask, a tap.
    """
    hidden = family_of(model).decoder(model)(ids, use_cache=False, **passed).last_hidden_state
    return ReadOut.of(model).capped(model.get_output_embeddings()(hidden[at]))

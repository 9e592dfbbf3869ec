"""The one exception for input that a person can put right."""

from __future__ import annotations


class InputError(Exception):
    """Something that was given to the program is wrong, and a person can mend it.

    Args:
        what: the fact, naming the file, row or key ("params.yaml: distil.lambda_p2 is -1").
        remedy: what to do about it, as an instruction ("give a number >= 0").
    """

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what}\n  What to do: {self.remedy}"

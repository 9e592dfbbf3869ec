"""Mechanistic distillation of reasoning: heads, patching, students, evaluation.

The parts, from the bottom up: ``study`` (parameters), ``data``, ``models``, ``traces``, ``heads``,
``patching`` and ``distil``, ``evaluate``, ``significance``, ``report``. Each imports only parts
named before it.
"""

__version__ = "0.1.0"

# What every job is given: parameters, the fingerprint of its code, resources, the run wrapper.

from mechdistill.planning.resources import needs_of
from mechdistill.planning.work import planner_of
from mechdistill.provenance.fingerprint import SourceTree

SOURCES = SourceTree(ROOT)
PLANNER = None if JOINED else planner_of(STUDY, ROOT)

# Checkpoints lie under the fingerprint of the code: other code never goes on from them.
CHECKPOINTS = f"checkpoints/{STUDY.study}/{{params.code}}"


def parameters(*keys):
    """The values of dotted keys as one canonical JSON string.

    One string, since Snakemake compares several values as a set: it would miss two that swap.
    """
    return STUDY.subset(keys)


def code(script, *also):
    """Fingerprint of a script of workflow/scripts, and of files that it imports by computed name."""
    try:
        return SOURCES.fingerprint(f"workflow/scripts/{script}.py", *also).digest
    except InputError as error:
        raise WorkflowError(str(error)) from None


def needs(rule):
    """Resources of a rule (mechdistill.planning.resources), more at each further attempt."""
    needed = needs_of(rule, PLANNER)
    cards = {"gpu": needed.gpus} if needed.gpus else {}
    return cards | {
        "mem_mb": lambda wildcards, attempt: needed.at(attempt).memory,
        "runtime": lambda wildcards, attempt: needed.at(attempt).minutes,
    }


def job(command, also=""):
    """Shell command that runs a script with its arguments through the run wrapper."""
    return (
        "python -m mechdistill.provenance.run --params {params.p:q} --code {params.code}"
        " --inputs {input} --outputs {output} --log {log} --threads {threads}"
        f" --also {also}{' --restricted' * STUDY.restricted} -- workflow/scripts/{command}"
    )

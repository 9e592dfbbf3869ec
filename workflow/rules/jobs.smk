# What every job is given: its parameters, the fingerprint of its code, the run wrapper.

from mechdistill.distil.methods import declared_parameters, declared_pools, method_file
from mechdistill.provenance.fingerprint import SourceTree

SOURCES = SourceTree(ROOT)

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


def job(command, also=""):
    """Shell command that runs a script with its arguments through the run wrapper."""
    return (
        "python -m mechdistill.provenance.run --params {params.p:q} --code {params.code}"
        " --inputs {input} --outputs {output} --log {log} --threads {threads}"
        f" --also {also} -- workflow/scripts/{command}"
    )


def parameters_of_method(method):
    """What the trainer reads, and what the file of the method declares."""
    try:
        declared = declared_parameters(method)
        declared_pools(method)
    except InputError as error:
        raise WorkflowError(str(error)) from None
    try:
        return parameters("distil.training", *declared)
    except InputError as error:
        raise WorkflowError(
            f"{method_file(method)}: parameters: {error.what}\n"
            "  What to do: correct the key there, or add it to mechdistill.study and params.yaml"
        ) from None


# Now, not when a job asks: an error within a function of wildcards is shown with a traceback.
PARAMETERS_OF_METHOD = {
    method: parameters_of_method(method) for method in STUDY.distil.methods
}


def method_parameters(wildcards):
    """What a job of the method reads."""
    return PARAMETERS_OF_METHOD[wildcards.method]


def method_code(wildcards):
    """The trainer's code and that of the method, which it imports by name."""
    return code(
        "train_student", f"src/mechdistill/distil/methods/{wildcards.method}.py"
    )

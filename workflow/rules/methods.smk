# What the files of the distillation methods declare, as the rules need it.

from mechdistill.distil.methods import (
    declared_needs,
    declared_parameters,
    declared_pools,
    declared_settings,
    method_file,
    tuned_method,
)


def parameters_of_method(method, *also):
    """What the trainer reads, and what the file of the method declares."""
    try:
        declared = declared_parameters(method)
        declared_pools(method)
    except InputError as error:
        raise WorkflowError(str(error)) from None
    try:
        return parameters("distil.training", "distil.deepspeed", *also, *declared)
    except InputError as error:
        raise WorkflowError(
            f"{method_file(method)}: parameters: {error.what}\n"
            "  What to do: correct the key there, or add it to mechdistill.study and params.yaml"
        ) from None


def needs_of_method(method):
    """Artifacts that the file of the method asks for, by name."""
    unknown = [name for name in declared_needs(method) if name not in NEEDS]
    if unknown:
        raise WorkflowError(
            f"{method_file(method)}: needs: no rule makes {unknown[0]!r}\n"
            f"  What to do: name some of {', '.join(NEEDS)}, or add it to NEEDS of methods.smk"
        )
    in_teacher_tokens = set(declared_needs(method)) & IN_TEACHER_TOKENS
    if in_teacher_tokens and STUDY.distil.student_tokenizer is not None:
        raise WorkflowError(
            f"distil.methods names {method!r}, which trains on texts in the teacher's tokens, and"
            " distil.student_tokenizer gives the students others\n"
            "  What to do: leave the method out, or set distil.student_tokenizer to null"
        )
    return declared_needs(method)


def tuning_of_method(method):
    """The method whose tuning the method takes; it has as many settings as are tried."""
    try:
        other = tuned_method(method)
        there = len(declared_settings(other))
    except InputError as error:
        raise WorkflowError(str(error)) from None
    if there < STUDY.distil.tuning.settings:
        raise WorkflowError(
            f"distil.tuning.settings is {STUDY.distil.tuning.settings}, but {method_file(other)}"
            f" lists {there} in settings_tried\n"
            "  What to do: lower the number, or list more settings there"
        )
    return other


NEEDS = {
    "samples": "<results>/distil/samples/traces.parquet",
    "sample_targets": "<results>/distil/samples/targets.safetensors",
    "difficulty": "<results>/distil/samples/difficulty-{seed}.parquet",
    "reasoning_encoder": "<results>/distil/reasoning_encoder/encoder.safetensors",
    "event_targets": "<results>/distil/event_targets.safetensors",
}
# Texts that the teacher wrote beyond its traces: students of another tokenizer cannot read them.
IN_TEACHER_TOKENS = {"samples", "sample_targets", "difficulty", "reasoning_encoder"}

# Now, not when a job asks: an error within a function of wildcards is shown with a traceback.
PARAMETERS_OF_METHOD = {
    method: parameters_of_method(method) for method in STUDY.distil.methods
}
TUNING_OF_METHOD = {method: tuning_of_method(method) for method in STUDY.distil.methods}
TRAINED_METHODS = sorted({*TUNING_OF_METHOD, *TUNING_OF_METHOD.values()})
PARAMETERS_OF_TRIAL = {
    method: parameters_of_method(
        method,
        "distil.tuning",
        "traces.early_tokens",
        "traces.max_new_tokens",
        "traces.batch_size",
    )
    for method in TRAINED_METHODS
}
NEEDED = {method: needs_of_method(method) for method in TRAINED_METHODS}


def method_parameters(wildcards):
    """What a job of the method reads."""
    return PARAMETERS_OF_METHOD[wildcards.method]


def trial_parameters(wildcards):
    """What a trial of one of the method's settings reads."""
    return PARAMETERS_OF_TRIAL[wildcards.method]


def method_code(wildcards):
    """The trainer's code and that of the method, which it imports by name."""
    return code(
        "train_student", f"src/mechdistill/distil/methods/{wildcards.method}.py"
    )


def trial_code(wildcards):
    """The same of a trial."""
    return code("try_setting", f"src/mechdistill/distil/methods/{wildcards.method}.py")


def needed(wildcards):
    """What only this method's students are trained from, in the order of its `needs`."""
    return [
        NEEDS[name].format(seed=wildcards.seed) for name in NEEDED[wildcards.method]
    ]


def tuned(wildcards):
    """The tuned weights of a method; none where one setting is all that there is to try."""
    if STUDY.distil.tuning.settings == 1:
        return []
    return f"<results>/distil/tuning/{TUNING_OF_METHOD[wildcards.method]}/tuned.json"

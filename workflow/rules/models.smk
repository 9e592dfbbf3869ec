# The models that are evaluated, and the files that belong to each.

MODELS = [
    "teacher",
    *expand(
        "{method}-seed{seed}", method=STUDY.distil.methods, seed=STUDY.distil.seeds
    ),
]


def method_of(wildcards):
    """`mech` of `mech-seed0`; the teacher is a method of its own."""
    return wildcards.model.partition("-seed")[0]


def seed_of(wildcards):
    """`0` of `mech-seed0`."""
    return wildcards.model.partition("-seed")[2] or STUDY.teacher.seed


def weights(wildcards):
    """Weights of a model."""
    if wildcards.model == "teacher":
        return "<results>/teacher/model.safetensors"
    return f"<results>/distil/{method_of(wildcards)}/seed{seed_of(wildcards)}/model.safetensors"


def configuration(wildcards):
    """Configuration of a model."""
    if wildcards.model == "teacher":
        return "<results>/teacher/config.json"
    return (
        f"<results>/distil/{method_of(wildcards)}/seed{seed_of(wildcards)}/config.json"
    )


def own_pools(wildcards):
    """The teacher's pools, or those of the base student that a student started from."""
    if wildcards.model == "teacher":
        return "<results>/heads/pools.json"
    return f"<results>/distil/base/seed{seed_of(wildcards)}/pools.json"


def student_pools(wildcards):
    """The heads of the base student that the losses of a method look at."""
    random = "random_" if declared_pools(wildcards.method) == "random" else ""
    return f"<results>/distil/base/seed{wildcards.seed}/{random}pools.json"


def teacher_targets(wildcards):
    """What the teacher's heads did, of the same kind as those of the student."""
    random = "random_" if declared_pools(wildcards.method) == "random" else ""
    return f"<results>/distil/{random}targets.safetensors"


# Students of another tokenizer read notes and reasoning in tokens of their own (distil.smk).
OTHER_TOKENIZER = (
    {}
    if STUDY.distil.student_tokenizer is None
    else {"student_tokenizer": "<results>/distil/tokenizer.json"}
)
STUDENT_TOKENIZER = OTHER_TOKENIZER.get(
    "student_tokenizer", "<results>/data/tokenizer.json"
)
STUDENT_TRACES = (
    "<results>/distil/traces.parquet"
    if OTHER_TOKENIZER
    else "<results>/teacher/traces.parquet"
)


def own_tokenizer(wildcards):
    """The tokenizer of a model."""
    if wildcards.model == "teacher":
        return "<results>/data/tokenizer.json"
    return STUDENT_TOKENIZER


def traces_of_the_teacher(wildcards):
    """The teacher's traces in the tokens of a model."""
    if wildcards.model == "teacher":
        return "<results>/teacher/traces.parquet"
    return STUDENT_TRACES


def phase_of_figure(wildcards):
    """Figure 5 shows the first phase, Figure 8 the second."""
    return {"5": 1, "8": 2}[wildcards.figure]

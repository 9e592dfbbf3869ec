# Students: the teacher's targets cached once, a base student a seed, one student a method and seed.
# Checkpoints lie under the fingerprint of the code: other code never goes on from them.


def student_parameters(wildcards):
    """What the trainer reads, and what the file of the method declares."""
    return parameters("distil.training", *declared_parameters(wildcards.method))


def student_code(wildcards):
    """The script imports the file of the method by name."""
    return code(
        "train_student", f"src/mechdistill/distil/methods/{wildcards.method}.py"
    )


rule cache_targets:
    input:
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        pools="<results>/heads/pools.json",
        traces="<results>/teacher/traces.parquet",
        examples="<results>/data/examples.parquet",
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
    output:
        targets="<results>/distil/targets.safetensors",
        table="<results>/distil/targets.parquet",
    log:
        "<logs>/cache_targets.log",
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        p=parameters("distil.teacher_top_k", "heads.batch_size"),
        code=code("cache_targets"),
    shell:
        RUN + " -- workflow/scripts/cache_targets.py"
        " --model {input.model} --config {input.config} --pools {input.pools}"
        " --traces {input.traces} --examples {input.examples}"
        " --label-space {input.label_space} --tokenizer {input.tokenizer}"
        " --targets {output.targets} --table {output.table}"


rule train_base_student:
    input:
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
    output:
        model="<results>/distil/base/seed{seed}/model.safetensors",
        config="<results>/distil/base/seed{seed}/config.json",
        curve="<results>/distil/base/seed{seed}/learning_curve.parquet",
    log:
        "<logs>/train_base_student-{seed}.log",
    resources:
        mem_mb=4000,
        runtime=120,
    params:
        p=parameters("seed", "data.world", "distil.student", "distil.base"),
        code=code("train_base_student"),
    shell:
        RUN + " -- workflow/scripts/train_base_student.py --seed {wildcards.seed}"
        " --label-space {input.label_space} --tokenizer {input.tokenizer}"
        " --checkpoint checkpoints/{STUDY.study}/{params.code}/base-seed{wildcards.seed}"
        " --model {output.model} --model-config {output.config} --curve {output.curve}"


rule pool_student_heads:
    input:
        base="<results>/distil/base/seed{seed}/model.safetensors",
        config="<results>/distil/base/seed{seed}/config.json",
        traces="<results>/teacher/traces.parquet",
        examples="<results>/data/examples.parquet",
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
    output:
        pools="<results>/distil/base/seed{seed}/pools.json",
    log:
        "<logs>/pool_student_heads-{seed}.log",
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        p=parameters(
            "heads.pool_size",
            "heads.pool_temperature",
            "heads.minimum_keys",
            "heads.batch_size",
        ),
        code=code("pool_student_heads"),
    shell:
        RUN + " -- workflow/scripts/pool_student_heads.py"
        " --base {input.base} --config {input.config} --traces {input.traces}"
        " --examples {input.examples} --label-space {input.label_space}"
        " --tokenizer {input.tokenizer} --pools {output.pools}"


rule train_student:
    input:
        base="<results>/distil/base/seed{seed}/model.safetensors",
        config="<results>/distil/base/seed{seed}/config.json",
        pools="<results>/distil/base/seed{seed}/pools.json",
        targets="<results>/distil/targets.safetensors",
        traces="<results>/teacher/traces.parquet",
        examples="<results>/data/examples.parquet",
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
    output:
        model="<results>/distil/{method}/seed{seed}/model.safetensors",
        config="<results>/distil/{method}/seed{seed}/config.json",
        curve="<results>/distil/{method}/seed{seed}/learning_curve.parquet",
        budget="<results>/distil/{method}/seed{seed}/budget.json",
    log:
        "<logs>/train_student-{method}-{seed}.log",
    resources:
        mem_mb=4000,
        runtime=240,
    params:
        p=student_parameters,
        code=student_code,
    shell:
        RUN + " --also src/mechdistill/distil/methods/{wildcards.method}.py"
        " -- workflow/scripts/train_student.py"
        " --method {wildcards.method} --seed {wildcards.seed}"
        " --base {input.base} --config {input.config} --pools {input.pools}"
        " --targets {input.targets} --traces {input.traces}"
        " --examples {input.examples} --label-space {input.label_space}"
        " --tokenizer {input.tokenizer}"
        " --checkpoint checkpoints/{STUDY.study}/{params.code}"
        "/{wildcards.method}-seed{wildcards.seed} --model {output.model}"
        " --model-config {output.config} --curve {output.curve} --budget {output.budget}"

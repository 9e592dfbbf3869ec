# Students: the teacher's targets cached once, a base student a seed, one student a method and seed.


rule cache_targets:
    input:
        **OTHER_TOKENIZER,
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
    priority: 20
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("cache_targets"),
    params:
        p=parameters("distil.teacher_top_k", "heads.minimum_keys", "heads.batch_size"),
        code=code("cache_targets"),
    shell:
        job(
            "cache_targets.py"
            " --model {input.model} --config {input.config} --pools {input.pools}"
            " --traces {input.traces} --examples {input.examples}"
            " --label-space {input.label_space} --tokenizer {input.tokenizer}"
            " --targets {output.targets} --table {output.table}"
            + " --student-tokenizer {input.student_tokenizer}" * bool(OTHER_TOKENIZER)
        )


# The teacher's attention at decision events, for methods that declare `needs = ("event_targets",)`.


rule cache_event_targets:
    input:
        **OTHER_TOKENIZER,
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        effects="<results>/patching/head_effects.parquet",
        traces="<results>/teacher/traces.parquet",
        examples="<results>/data/examples.parquet",
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
    output:
        events="<results>/distil/event_targets.safetensors",
    log:
        "<logs>/cache_event_targets.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("cache_event_targets"),
    params:
        p=parameters("heads.pool_size", "heads.batch_size"),
        code=code("cache_event_targets"),
    shell:
        job(
            "cache_event_targets.py --model {input.model} --config {input.config}"
            " --effects {input.effects} --traces {input.traces}"
            " --examples {input.examples} --label-space {input.label_space}"
            " --tokenizer {input.tokenizer} --events {output.events}"
            + " --student-tokenizer {input.student_tokenizer}" * bool(OTHER_TOKENIZER)
        )


# Random heads in place of the pools, for methods that declare `pools = "random"`.


rule draw_random_pools:
    input:
        pools="<results>/heads/pools.json",
        config="<results>/teacher/config.json",
    output:
        random_pools="<results>/heads/random_pools.json",
    log:
        "<logs>/draw_random_pools.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("draw_random_pools"),
    params:
        p=parameters("heads.seed"),
        code=code("draw_random_pools"),
    shell:
        job(
            "draw_random_pools.py --pools {input.pools} --config {input.config}"
            " --random-pools {output.random_pools}"
        )


use rule draw_random_pools as draw_random_student_pools with:
    input:
        pools="<results>/distil/base/seed{seed}/pools.json",
        config="<results>/distil/base/seed{seed}/config.json",
    output:
        random_pools="<results>/distil/base/seed{seed}/random_pools.json",
    log:
        "<logs>/draw_random_pools-{seed}.log",


use rule cache_targets as cache_random_targets with:
    input:
        **OTHER_TOKENIZER,
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        pools="<results>/heads/random_pools.json",
        traces="<results>/teacher/traces.parquet",
        examples="<results>/data/examples.parquet",
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
    output:
        targets="<results>/distil/random_targets.safetensors",
        table="<results>/distil/random_targets.parquet",
    log:
        "<logs>/cache_targets-random.log",


if OTHER_TOKENIZER:

    rule train_student_tokenizer:
        input:
            label_space="<results>/data/label_space.json",
        output:
            tokenizer=STUDENT_TOKENIZER,
        log:
            "<logs>/train_student_tokenizer.log",
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("train_student_tokenizer"),
        params:
            p=parameters("seed", "data.world", "distil.student_tokenizer"),
            code=code("train_student_tokenizer"),
        shell:
            job(
                "train_student_tokenizer.py --label-space {input.label_space}"
                " --tokenizer {output.tokenizer}"
            )

    rule retokenise_traces:
        input:
            **OTHER_TOKENIZER,
            traces="<results>/teacher/traces.parquet",
            examples="<results>/data/examples.parquet",
            label_space="<results>/data/label_space.json",
            tokenizer="<results>/data/tokenizer.json",
        output:
            student_traces=STUDENT_TRACES,
        log:
            "<logs>/retokenise_traces.log",
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("retokenise_traces"),
        params:
            p=parameters("traces.max_new_tokens"),
            code=code("retokenise_traces"),
        shell:
            job(
                "retokenise_traces.py --traces {input.traces} --examples {input.examples}"
                " --label-space {input.label_space} --tokenizer {input.tokenizer}"
                " --student-tokenizer {input.student_tokenizer}"
                " --student-traces {output.student_traces}"
            )


rule train_base_student:
    input:
        label_space="<results>/data/label_space.json",
        tokenizer=STUDENT_TOKENIZER,
    output:
        model="<results>/distil/base/seed{seed}/model.safetensors",
        config="<results>/distil/base/seed{seed}/config.json",
        curve="<results>/distil/base/seed{seed}/learning_curve.parquet",
    log:
        "<logs>/train_base_student-{seed}.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("train_base_student"),
    params:
        p=parameters("seed", "data.world", "distil.student", "distil.base"),
        code=code("train_base_student"),
    shell:
        job(
            "train_base_student.py --seed {wildcards.seed}"
            " --label-space {input.label_space} --tokenizer {input.tokenizer}"
            f" --checkpoint {CHECKPOINTS}/base-seed{{wildcards.seed}}"
            " --model {output.model} --model-config {output.config} --curve {output.curve}"
        )


rule pool_student_heads:
    input:
        base="<results>/distil/base/seed{seed}/model.safetensors",
        config="<results>/distil/base/seed{seed}/config.json",
        traces=STUDENT_TRACES,
        examples="<results>/data/examples.parquet",
        label_space="<results>/data/label_space.json",
        tokenizer=STUDENT_TOKENIZER,
    output:
        pools="<results>/distil/base/seed{seed}/pools.json",
    log:
        "<logs>/pool_student_heads-{seed}.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("pool_student_heads"),
    params:
        p=parameters(
            "heads.pool_size",
            "heads.pool_temperature",
            "heads.minimum_keys",
            "heads.batch_size",
        ),
        code=code("pool_student_heads"),
    shell:
        job(
            "pool_student_heads.py"
            " --base {input.base} --config {input.config} --traces {input.traces}"
            " --examples {input.examples} --label-space {input.label_space}"
            " --tokenizer {input.tokenizer} --pools {output.pools}"
        )


rule train_student:
    input:
        base="<results>/distil/base/seed{seed}/model.safetensors",
        config="<results>/distil/base/seed{seed}/config.json",
        pools=student_pools,
        targets=teacher_targets,
        traces=STUDENT_TRACES,
        examples="<results>/data/examples.parquet",
        label_space="<results>/data/label_space.json",
        tokenizer=STUDENT_TOKENIZER,
        needs=needed,
        tuned=tuned,
    output:
        model="<results>/distil/{method}/seed{seed}/model.safetensors",
        config="<results>/distil/{method}/seed{seed}/config.json",
        curve="<results>/distil/{method}/seed{seed}/learning_curve.parquet",
        budget="<results>/distil/{method}/seed{seed}/budget.json",
    log:
        "<logs>/train_student-{method}-{seed}.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("train_student"),
    params:
        p=method_parameters,
        code=method_code,
    shell:
        job(
            "train_student.py"
            " --method {wildcards.method} --seed {wildcards.seed}"
            " --base {input.base} --config {input.config} --pools {input.pools}"
            " --targets {input.targets} --traces {input.traces}"
            " --examples {input.examples} --label-space {input.label_space}"
            " --tokenizer {input.tokenizer} --needs {input.needs} --tuned {input.tuned}"
            f" --checkpoint {CHECKPOINTS}/{{wildcards.method}}-seed{{wildcards.seed}}"
            " --model {output.model} --model-config {output.config}"
            " --curve {output.curve} --budget {output.budget}",
            also="src/mechdistill/distil/methods/{wildcards.method}.py",
        )

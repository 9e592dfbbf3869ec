# What only some methods train on (`needs` in their files), each made once.


rule sample_traces:
    input:
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
        examples="<results>/data/examples.parquet",
    output:
        samples="<results>/distil/samples/traces.parquet",
    log:
        "<logs>/sample_traces.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("sample_traces"),
    params:
        p=parameters(
            "seed",
            "distil.morsd.samples",
            "distil.morsd.temperature",
            "traces.early_tokens",
            "traces.max_new_tokens",
            "traces.batch_size",
        ),
        code=code("sample_traces"),
    shell:
        job(
            "sample_traces.py --model {input.model} --config {input.config}"
            " --label-space {input.label_space} --tokenizer {input.tokenizer}"
            " --examples {input.examples} --samples {output.samples}"
        )


rule cache_sample_targets:
    input:
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        samples="<results>/distil/samples/traces.parquet",
        tokenizer="<results>/data/tokenizer.json",
    output:
        targets="<results>/distil/samples/targets.safetensors",
    log:
        "<logs>/cache_sample_targets.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("cache_sample_targets"),
    params:
        p=parameters("distil.teacher_top_k", "heads.minimum_keys", "heads.batch_size"),
        code=code("cache_sample_targets"),
    shell:
        job(
            "cache_sample_targets.py --model {input.model} --config {input.config}"
            " --samples {input.samples} --tokenizer {input.tokenizer}"
            " --targets {output.targets}"
        )


rule measure_difficulty:
    input:
        base="<results>/distil/base/seed{seed}/model.safetensors",
        config="<results>/distil/base/seed{seed}/config.json",
        traces="<results>/teacher/traces.parquet",
        samples="<results>/distil/samples/traces.parquet",
        examples="<results>/data/examples.parquet",
        tokenizer="<results>/data/tokenizer.json",
    output:
        difficulty="<results>/distil/samples/difficulty-{seed}.parquet",
    log:
        "<logs>/measure_difficulty-{seed}.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("measure_difficulty"),
    params:
        p=parameters(),
        code=code("measure_difficulty"),
    shell:
        job(
            "measure_difficulty.py --base {input.base} --config {input.config}"
            " --traces {input.traces} --samples {input.samples}"
            " --examples {input.examples} --tokenizer {input.tokenizer}"
            " --difficulty {output.difficulty}"
        )


rule train_reasoning_encoder:
    input:
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        traces="<results>/teacher/traces.parquet",
        tokenizer="<results>/data/tokenizer.json",
    output:
        encoder="<results>/distil/reasoning_encoder/encoder.safetensors",
        curve="<results>/distil/reasoning_encoder/learning_curve.parquet",
    log:
        "<logs>/train_reasoning_encoder.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("train_reasoning_encoder"),
    params:
        p=parameters("distil.semcot.encoder"),
        code=code("train_reasoning_encoder"),
    shell:
        job(
            "train_reasoning_encoder.py --model {input.model} --config {input.config}"
            " --traces {input.traces} --tokenizer {input.tokenizer}"
            " --encoder {output.encoder} --curve {output.curve}"
        )

# The teacher, and its reasoning on every note.


rule train_teacher:
    input:
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
        examples="<results>/data/examples.parquet",
    output:
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        curve="<results>/teacher/learning_curve.parquet",
    log:
        "<logs>/train_teacher.log",
    conda:
        "../../envs/environment.yml"
    resources:
        mem_mb=8000,
        runtime=480,
    params:
        p=parameters(
            "seed",
            "data.world",
            "teacher",
            "traces.max_new_tokens",
            "traces.batch_size",
        ),
        code=code("train_teacher"),
    shell:
        job(
            "train_teacher.py"
            " --label-space {input.label_space} --tokenizer {input.tokenizer}"
            f" --examples {{input.examples}} --checkpoint {CHECKPOINTS}/teacher"
            " --model {output.model} --config {output.config} --curve {output.curve}"
        )


rule generate_teacher_traces:
    input:
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
        examples="<results>/data/examples.parquet",
    output:
        traces="<results>/teacher/traces.parquet",
    log:
        "<logs>/generate_teacher_traces.log",
    conda:
        "../../envs/environment.yml"
    resources:
        mem_mb=8000,
        runtime=240,
    params:
        p=parameters(
            "traces.early_tokens",
            "traces.max_new_tokens",
            "traces.batch_size",
        ),
        code=code("generate_teacher_traces"),
    shell:
        job(
            "generate_teacher_traces.py --model {input.model} --config {input.config}"
            " --label-space {input.label_space} --tokenizer {input.tokenizer}"
            " --examples {input.examples} --traces {output.traces}"
        )

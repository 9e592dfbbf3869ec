# The teacher: from scratch, or a checkpoint that is fine-tuned; its reasoning on every note.
# Almost everything waits for it, hence the priorities here; students, the longest jobs by far, wait
# for the scores, pools and targets that come after it.


if STUDY.teacher.checkpoint is None:

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
        priority: 50
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("train_teacher"),
        params:
            p=parameters(
                "seed",
                "data.world",
                *LISTING,
                "teacher.seed",
                "teacher.architecture",
                "teacher.training",
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

else:

    rule convert_teacher:
        output:
            model="<results>/teacher/pretrained/model.safetensors",
            config="<results>/teacher/pretrained/config.json",
            tokenizer="<results>/data/tokenizer.json",
        log:
            "<logs>/convert_teacher.log",
        priority: 50
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("convert_teacher"),
        params:
            p=parameters("teacher.checkpoint"),
            code=code("convert_teacher"),
        shell:
            job(
                "convert_teacher.py --model {output.model} --config {output.config}"
                " --tokenizer {output.tokenizer}"
            )

    rule fine_tune_teacher:
        input:
            pretrained="<results>/teacher/pretrained/model.safetensors",
            pretrained_config="<results>/teacher/pretrained/config.json",
            label_space="<results>/data/label_space.json",
            tokenizer="<results>/data/tokenizer.json",
            examples="<results>/data/examples.parquet",
        output:
            model="<results>/teacher/model.safetensors",
            config="<results>/teacher/config.json",
            curve="<results>/teacher/learning_curve.parquet",
        log:
            "<logs>/fine_tune_teacher.log",
        priority: 50
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("fine_tune_teacher"),
        params:
            p=parameters(
                "seed",
                "data.world",
                "data.prompt",
                *LISTING,
                "teacher.seed",
                "teacher.fine_tuning",
                "traces.max_new_tokens",
                "traces.batch_size",
            ),
            code=code("fine_tune_teacher"),
        shell:
            job(
                "fine_tune_teacher.py --pretrained {input.pretrained}"
                " --pretrained-config {input.pretrained_config}"
                " --label-space {input.label_space} --tokenizer {input.tokenizer}"
                f" --examples {{input.examples}} --checkpoint {CHECKPOINTS}/teacher"
                " --model {output.model} --config {output.config} --curve {output.curve}"
            )

    rule compare_with_zero_shot:
        input:
            pretrained="<results>/teacher/pretrained/model.safetensors",
            pretrained_config="<results>/teacher/pretrained/config.json",
            model="<results>/teacher/model.safetensors",
            config="<results>/teacher/config.json",
            traces="<results>/teacher/traces.parquet",
            label_space="<results>/data/label_space.json",
            tokenizer="<results>/data/tokenizer.json",
            examples="<results>/data/examples.parquet",
        output:
            traces="<results>/teacher/pretrained/traces.parquet",
            quality="<results>/teacher/quality.csv",
            head_agreement="<results>/teacher/head_agreement.csv",
        log:
            "<logs>/compare_with_zero_shot.log",
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("compare_with_zero_shot"),
        params:
            p=parameters(
                "traces.early_tokens",
                "traces.max_new_tokens",
                "traces.batch_size",
                "heads.minimum_keys",
                "heads.batch_size",
            ),
            code=code("compare_with_zero_shot"),
        shell:
            job(
                "compare_with_zero_shot.py --pretrained {input.pretrained}"
                " --pretrained-config {input.pretrained_config} --model {input.model}"
                " --config {input.config} --traces {input.traces}"
                " --label-space {input.label_space} --tokenizer {input.tokenizer}"
                " --examples {input.examples} --zero-shot-traces {output.traces}"
                " --quality {output.quality} --head-agreement {output.head_agreement}"
            )


# Both write the same file: the first in its own process, the second asks a server that holds the
# teacher. How it is asked stands in the study and in nothing that the teacher is trained by.

if STUDY.teacher.generation.backend == "transformers":

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
        priority: 50
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("generate_teacher_traces"),
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

else:

    rule ask_teacher_server:
        input:
            model="<results>/teacher/model.safetensors",
            config="<results>/teacher/config.json",
            label_space="<results>/data/label_space.json",
            tokenizer="<results>/data/tokenizer.json",
            examples="<results>/data/examples.parquet",
        output:
            traces="<results>/teacher/traces.parquet",
        log:
            "<logs>/ask_teacher_server.log",
        priority: 50
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("ask_teacher_server"),
        params:
            p=parameters(
                "teacher.seed",
                "teacher.generation.server",
                "traces.early_tokens",
                "traces.max_new_tokens",
            ),
            code=code("ask_teacher_server"),
        shell:
            job(
                "ask_teacher_server.py --model {input.model} --config {input.config}"
                " --label-space {input.label_space} --tokenizer {input.tokenizer}"
                f" --examples {{input.examples}} --answers {CHECKPOINTS}/answers.jsonl"
                " --traces {output.traces}"
            )


rule find_events:
    input:
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        traces="<results>/teacher/traces.parquet",
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
        examples="<results>/data/examples.parquet",
    output:
        events="<results>/teacher/events.parquet",
    log:
        "<logs>/find_events.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("find_events"),
    params:
        p=parameters("heads.batch_size"),
        code=code("find_events"),
    shell:
        job(
            "find_events.py --model {input.model} --config {input.config}"
            " --traces {input.traces} --label-space {input.label_space}"
            " --tokenizer {input.tokenizer} --examples {input.examples}"
            " --events {output.events}"
        )

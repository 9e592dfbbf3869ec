# What the heads of trained students do for decisions, found anew on each student's own traces.

STUDENTS = MODELS[1:]
RECOVERY = (
    []
    if STUDY.evaluate.recovery_notes is None
    else "<results>/evaluate/causal_recovery.parquet"
)

if RECOVERY:

    rule decode_patching_notes:
        input:
            model=weights,
            config=configuration,
            tokenizer=own_tokenizer,
            label_space="<results>/data/label_space.json",
            examples="<results>/data/examples.parquet",
        output:
            traces="<results>/evaluate/{model}/patching/traces.parquet",
        log:
            "<logs>/decode_patching_notes-{model}.log",
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("decode_patching_notes"),
        params:
            p=parameters(
                "evaluate.recovery_notes",
                "traces.early_tokens",
                "traces.max_new_tokens",
                "traces.batch_size",
            ),
            code=code("decode_patching_notes"),
        shell:
            job(
                "decode_patching_notes.py --model {input.model} --config {input.config}"
                " --tokenizer {input.tokenizer} --label-space {input.label_space}"
                " --examples {input.examples} --traces {output.traces}"
            )

    use rule find_events as find_student_events with:
        input:
            model=weights,
            config=configuration,
            traces="<results>/evaluate/{model}/patching/traces.parquet",
            label_space="<results>/data/label_space.json",
            tokenizer=own_tokenizer,
            examples="<results>/data/examples.parquet",
        output:
            events="<results>/evaluate/{model}/patching/events.parquet",
        log:
            "<logs>/find_events-{model}.log",
        resources:
            **needs("find_student_events"),

    use rule ablate_heads as ablate_student_heads with:
        input:
            model=weights,
            config=configuration,
            traces="<results>/evaluate/{model}/patching/traces.parquet",
            events="<results>/evaluate/{model}/patching/events.parquet",
            tokenizer=own_tokenizer,
        output:
            ablation="<results>/evaluate/{model}/patching/ablation.parquet",
        log:
            "<logs>/ablate_heads-{model}.log",
        resources:
            **needs("ablate_student_heads"),

    use rule ablate_head_sets as ablate_student_sets with:
        input:
            model=weights,
            config=configuration,
            traces="<results>/evaluate/{model}/patching/traces.parquet",
            events="<results>/evaluate/{model}/patching/events.parquet",
            ablation="<results>/evaluate/{model}/patching/ablation.parquet",
            tokenizer=own_tokenizer,
        output:
            sets="<results>/evaluate/{model}/patching/head_sets.parquet",
        log:
            "<logs>/ablate_head_sets-{model}.log",
        resources:
            **needs("ablate_student_sets"),

    rule measure_recovery:
        input:
            teacher="<results>/patching/head_sets.parquet",
            students=expand(
                "<results>/evaluate/{model}/patching/head_sets.parquet", model=STUDENTS
            ),
        output:
            recovery=RECOVERY,
        log:
            "<logs>/measure_recovery.log",
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("measure_recovery"),
        params:
            p=parameters("significance.bootstrap", "significance.seed"),
            code=code("measure_recovery"),
        shell:
            job(
                "measure_recovery.py --teacher {input.teacher}"
                " --students {input.students} --recovery {output.recovery}"
            )

# What the teacher and every student write on the test notes, and how good it is.


rule decode_model:
    input:
        model=weights,
        config=configuration,
        tokenizer=own_tokenizer,
        label_space="<results>/data/label_space.json",
        examples="<results>/data/examples.parquet",
    output:
        traces="<results>/evaluate/{model}/traces.parquet",
        predictions="<results>/evaluate/{model}/predictions.parquet",
        validation_predictions="<results>/evaluate/{model}/validation_predictions.parquet",
    log:
        "<logs>/decode_model-{model}.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("decode_model"),
    params:
        p=parameters(
            "traces.early_tokens",
            "traces.max_new_tokens",
            "traces.batch_size",
        ),
        code=code("decode_model"),
        method=method_of,
        seed=seed_of,
    shell:
        job(
            "decode_model.py"
            " --name {wildcards.model} --method {params.method} --seed {params.seed}"
            " --model {input.model} --config {input.config} --tokenizer {input.tokenizer}"
            " --label-space {input.label_space} --examples {input.examples}"
            " --traces {output.traces} --predictions {output.predictions}"
            " --validation-predictions {output.validation_predictions}"
        )


rule score_model:
    input:
        model=weights,
        config=configuration,
        pools=own_pools,
        tokenizer=own_tokenizer,
        label_space="<results>/data/label_space.json",
        examples="<results>/data/examples.parquet",
        traces="<results>/evaluate/{model}/traces.parquet",
        predictions="<results>/evaluate/{model}/predictions.parquet",
        teacher_traces=traces_of_the_teacher,
    output:
        scores="<results>/evaluate/{model}/scores.parquet",
        curves="<results>/evaluate/{model}/curves.parquet",
    log:
        "<logs>/score_model-{model}.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("score_model"),
    params:
        p=parameters(
            "text_encoder.name",
            "text_encoder.sha256",
            "text_encoder.batch_size",
            "evaluate.curve_examples",
            "evaluate.curve_bins",
            "evaluate.curve_stride",
            "evaluate.precision_at",
            "evaluate.shuffles_seed",
            "heads.pool_size",
            "heads.pool_temperature",
            "heads.minimum_keys",
            "heads.batch_size",
        ),
        code=code("score_model"),
    shell:
        job(
            "score_model.py"
            " --model {input.model} --config {input.config} --pools {input.pools}"
            " --tokenizer {input.tokenizer} --label-space {input.label_space}"
            " --examples {input.examples} --traces {input.traces}"
            " --predictions {input.predictions} --teacher-traces {input.teacher_traces}"
            " --scores {output.scores} --curves {output.curves}"
        )


# LAS, where the study names a simulator.
SIMULATED = (
    []
    if STUDY.evaluate.simulator is None
    else "<results>/evaluate/simulatability.parquet"
)

if SIMULATED:

    rule train_simulator:
        input:
            traces="<results>/teacher/traces.parquet",
            examples="<results>/data/examples.parquet",
            label_space="<results>/data/label_space.json",
            tokenizer="<results>/data/tokenizer.json",
        output:
            simulator="<results>/evaluate/simulator/simulator.safetensors",
            validation="<results>/evaluate/simulator/validation.parquet",
        log:
            "<logs>/train_simulator.log",
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("train_simulator"),
        params:
            p=parameters(
                "evaluate.simulator",
                "text_encoder.name",
                "text_encoder.sha256",
                "text_encoder.batch_size",
            ),
            code=code("train_simulator"),
        shell:
            job(
                "train_simulator.py --traces {input.traces} --examples {input.examples}"
                " --label-space {input.label_space} --tokenizer {input.tokenizer}"
                " --simulator {output.simulator} --validation {output.validation}"
            )

    rule simulate_answers:
        input:
            traces=expand("<results>/evaluate/{model}/traces.parquet", model=MODELS),
            predictions=expand(
                "<results>/evaluate/{model}/predictions.parquet", model=MODELS
            ),
            simulator="<results>/evaluate/simulator/simulator.safetensors",
            examples="<results>/data/examples.parquet",
            label_space="<results>/data/label_space.json",
            tokenizers=list(
                dict.fromkeys(["<results>/data/tokenizer.json", STUDENT_TOKENIZER])
            ),
        output:
            answers="<results>/evaluate/simulatability.parquet",
        log:
            "<logs>/simulate_answers.log",
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("simulate_answers"),
        params:
            p=parameters(
                "evaluate.simulator.strip_labels",
                "text_encoder.name",
                "text_encoder.sha256",
                "text_encoder.batch_size",
            ),
            code=code("simulate_answers"),
        shell:
            job(
                "simulate_answers.py --traces {input.traces}"
                " --predictions {input.predictions} --simulator {input.simulator}"
                " --examples {input.examples} --label-space {input.label_space}"
                " --tokenizers {input.tokenizers} --answers {output.answers}"
            )


rule collect_scores:
    input:
        simulated=SIMULATED,
        scores=expand("<results>/evaluate/{model}/scores.parquet", model=MODELS),
        curves=expand("<results>/evaluate/{model}/curves.parquet", model=MODELS),
        predictions=expand(
            "<results>/evaluate/{model}/predictions.parquet", model=MODELS
        ),
        validation_predictions=expand(
            "<results>/evaluate/{model}/validation_predictions.parquet", model=MODELS
        ),
        label_space="<results>/data/label_space.json",
        examples="<results>/data/examples.parquet",
    output:
        scores="<results>/evaluate/scores.parquet",
        curves="<results>/evaluate/curves.parquet",
        predictions="<results>/evaluate/predictions.parquet",
        validation_predictions="<results>/evaluate/validation_predictions.parquet",
        corpus="<results>/evaluate/corpus.parquet",
        definitions="<results>/evaluate/definitions.json",
    log:
        "<logs>/collect_scores.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("collect_scores"),
    params:
        p=parameters(
            "evaluate.precision_at", "text_encoder.name", "text_encoder.sha256"
        ),
        code=code("collect_scores"),
    shell:
        job(
            "collect_scores.py"
            " --scores {input.scores} --curves {input.curves}"
            " --predictions {input.predictions}"
            " --validation-predictions {input.validation_predictions}"
            " --simulated {input.simulated}"
            " --label-space {input.label_space} --examples {input.examples}"
            " --all-scores {output.scores} --all-curves {output.curves}"
            " --all-predictions {output.predictions}"
            " --all-validation-predictions {output.validation_predictions}"
            " --corpus {output.corpus} --definitions {output.definitions}"
        )

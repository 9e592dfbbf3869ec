# Which heads the teacher uses in each phase: scores, rankings, pools, and what they do over time.


rule score_heads:
    input:
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        traces="<results>/teacher/traces.parquet",
        examples="<results>/data/examples.parquet",
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
    output:
        measurements="<results>/heads/measurements.parquet",
        margins="<results>/heads/margins.parquet",
        head_scores="<results>/heads/head_scores.parquet",
    log:
        "<logs>/score_heads.log",
    priority: 20
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("score_heads"),
    params:
        p=parameters(
            "heads.bootstrap",
            "heads.seed",
            "heads.minimum_keys",
            "heads.batch_size",
        ),
        code=code("score_heads"),
    shell:
        job(
            "score_heads.py"
            " --model {input.model} --config {input.config} --traces {input.traces}"
            " --examples {input.examples} --label-space {input.label_space}"
            " --tokenizer {input.tokenizer} --measurements {output.measurements}"
            " --margins {output.margins} --head-scores {output.head_scores}"
        )


rule rank_heads:
    input:
        head_scores="<results>/heads/head_scores.parquet",
        measurements="<results>/heads/measurements.parquet",
    output:
        rankings="<results>/heads/rankings.parquet",
        reliability="<results>/heads/reliability.parquet",
    log:
        "<logs>/rank_heads.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("rank_heads"),
    params:
        p=parameters("heads.bootstrap", "heads.seed"),
        code=code("rank_heads"),
    shell:
        job(
            "rank_heads.py"
            " --head-scores {input.head_scores} --measurements {input.measurements}"
            " --rankings {output.rankings} --reliability {output.reliability}"
        )


rule make_pools:
    input:
        head_scores="<results>/heads/head_scores.parquet",
        margins="<results>/heads/margins.parquet",
    output:
        pools="<results>/heads/pools.json",
    log:
        "<logs>/make_pools.log",
    priority: 20
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("make_pools"),
    params:
        p=parameters("heads.pool_size", "heads.pool_temperature"),
        code=code("make_pools"),
    shell:
        job(
            "make_pools.py"
            " --head-scores {input.head_scores} --margins {input.margins}"
            " --pools {output.pools}"
        )


rule watch_heads:
    input:
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        traces="<results>/teacher/traces.parquet",
        examples="<results>/data/examples.parquet",
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
    output:
        dynamics="<results>/heads/dynamics.parquet",
        attention_rows="<results>/heads/attention_rows.parquet",
    log:
        "<logs>/watch_heads.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("watch_heads"),
    params:
        p=parameters(
            "heads.batch_size",
            "heads.attention_examples",
            "report.worked_example",
        ),
        code=code("watch_heads"),
    shell:
        job(
            "watch_heads.py"
            " --model {input.model} --config {input.config} --traces {input.traces}"
            " --examples {input.examples} --label-space {input.label_space}"
            " --tokenizer {input.tokenizer} --dynamics {output.dynamics}"
            " --attention-rows {output.attention_rows}"
        )


rule agree_with_causal_effects:
    input:
        measurements="<results>/heads/measurements.parquet",
        single_heads="<results>/patching/single_heads.parquet",
    output:
        causal_agreement="<results>/heads/causal_agreement.parquet",
    log:
        "<logs>/agree_with_causal_effects.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("agree_with_causal_effects"),
    params:
        p=parameters("heads.bootstrap", "heads.seed", "heads.pool_size"),
        code=code("agree_with_causal_effects"),
    shell:
        job(
            "agree_with_causal_effects.py"
            " --measurements {input.measurements} --single-heads {input.single_heads}"
            " --causal-agreement {output.causal_agreement}"
        )

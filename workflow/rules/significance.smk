# Which differences between methods are more than chance.


rule compare_methods:
    input:
        scores="<results>/evaluate/scores.parquet",
        predictions="<results>/evaluate/predictions.parquet",
        validation_predictions="<results>/evaluate/validation_predictions.parquet",
        label_space="<results>/data/label_space.json",
        examples="<results>/data/examples.parquet",
    output:
        comparisons="<results>/significance/comparisons.parquet",
    log:
        "<logs>/compare_methods.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("compare_methods"),
    params:
        p=parameters(
            "distil.methods",
            "evaluate.precision_at",
            "significance.bootstrap",
            "significance.alpha",
            "significance.seed",
        ),
        code=code("compare_methods"),
    shell:
        job(
            "compare_methods.py"
            " --scores {input.scores} --predictions {input.predictions}"
            " --validation-predictions {input.validation_predictions}"
            " --label-space {input.label_space} --examples {input.examples}"
            " --comparisons {output.comparisons}"
        )

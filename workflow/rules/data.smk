# Label space, notes, twins: everything drawn from the root seed.


# A teacher that exists already brings its own (see teacher.smk).
TOKENIZER_OF_THE_WORLD = (
    {"tokenizer": "<results>/data/tokenizer.json"}
    if STUDY.teacher.checkpoint is None
    else {}
)


if STUDY.data.foldoc is None:

    rule make_label_space:
        output:
            **TOKENIZER_OF_THE_WORLD,
            label_space="<results>/data/label_space.json",
        log:
            "<logs>/make_label_space.log",
        conda:
            "../../envs/environment.yml"
        resources:
            mem_mb=1000,
            runtime=10,
        params:
            p=parameters("seed", "data.world"),
            code=code("make_label_space"),
        shell:
            job(
                "make_label_space.py --label-space {output.label_space}"
                + " --tokenizer {output.tokenizer}" * bool(TOKENIZER_OF_THE_WORLD)
            )

else:

    # The dictionary is no input: it lies where the package is installed, or in the user's cache.
    rule read_related_titles:
        output:
            **TOKENIZER_OF_THE_WORLD,
            label_space="<results>/data/label_space.json",
        log:
            "<logs>/read_related_titles.log",
        conda:
            "../../envs/environment.yml"
        resources:
            mem_mb=1000,
            runtime=10,
        params:
            p=parameters("seed", "data.world", "data.foldoc"),
            code=code("read_related_titles"),
        shell:
            job(
                "read_related_titles.py --label-space {output.label_space}"
                + " --tokenizer {output.tokenizer}" * bool(TOKENIZER_OF_THE_WORLD)
            )


rule make_examples:
    input:
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
    output:
        examples="<results>/data/examples.parquet",
    log:
        "<logs>/make_examples.log",
    conda:
        "../../envs/environment.yml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        p=parameters("seed", "data.world", "data.splits", "data.prompt"),
        code=code("make_examples"),
    shell:
        job(
            "make_examples.py --label-space {input.label_space}"
            " --tokenizer {input.tokenizer} --examples {output.examples}"
        )


rule make_twins:
    input:
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
        examples="<results>/data/examples.parquet",
    output:
        twins="<results>/data/twins.parquet",
    log:
        "<logs>/make_twins.log",
    conda:
        "../../envs/environment.yml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        p=parameters("seed"),
        code=code("make_twins"),
    shell:
        job(
            "make_twins.py --label-space {input.label_space}"
            " --tokenizer {input.tokenizer} --examples {input.examples} --twins {output.twins}"
        )


rule write_data_card:
    input:
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
        examples="<results>/data/examples.parquet",
        twins="<results>/data/twins.parquet",
    output:
        card="<results>/data/data_card.md",
    log:
        "<logs>/write_data_card.log",
    conda:
        "../../envs/environment.yml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        p=parameters("seed", "data.world", "data.splits"),
        code=code("write_data_card"),
    shell:
        job(
            "write_data_card.py --label-space {input.label_space}"
            " --tokenizer {input.tokenizer} --examples {input.examples} --twins {input.twins}"
            " --card {output.card}"
        )

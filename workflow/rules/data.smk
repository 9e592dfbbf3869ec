# Label space, notes, twins: everything drawn from the root seed.


# A teacher that exists already brings its own (see teacher.smk).
TOKENIZER_OF_THE_WORLD = (
    {"tokenizer": "<results>/data/tokenizer.json"}
    if STUDY.teacher.checkpoint is None
    else {}
)


# Long candidate lists are written anew for notes that were drawn with short ones.
LISTS = STUDY.data.candidates
LISTING = [] if LISTS is None else ["data.candidates"]
SWEPT = LISTS is not None and bool(LISTS.sweep)
DRAWN = f"<results>/data/{'examples' if LISTS is None else 'drawn'}.parquet"


if STUDY.data.world.name == "icd":

    rule make_label_space:
        output:
            **TOKENIZER_OF_THE_WORLD,
            label_space="<results>/data/label_space.json",
        log:
            "<logs>/make_label_space.log",
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("make_label_space"),
        params:
            p=parameters("seed", "data.world"),
            code=code("make_label_space"),
        shell:
            job(
                "make_label_space.py --label-space {output.label_space}"
                + " --tokenizer {output.tokenizer}" * bool(TOKENIZER_OF_THE_WORLD)
            )


if STUDY.data.foldoc is not None:

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
            **needs("read_related_titles"),
        params:
            p=parameters("seed", "data.world", "data.foldoc"),
            code=code("read_related_titles"),
        shell:
            job(
                "read_related_titles.py --label-space {output.label_space}"
                + " --tokenizer {output.tokenizer}" * bool(TOKENIZER_OF_THE_WORLD)
            )


if STUDY.data.source is None:

    rule make_examples:
        input:
            label_space="<results>/data/label_space.json",
            tokenizer="<results>/data/tokenizer.json",
        output:
            examples=DRAWN,
        log:
            "<logs>/make_examples.log",
        priority: 50  # the teacher, the longest way to the end, waits for it
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("make_examples"),
        params:
            p=parameters("seed", "data.world", "data.splits", "data.prompt"),
            code=code("make_examples"),
        shell:
            job(
                "make_examples.py --label-space {input.label_space}"
                " --tokenizer {input.tokenizer} --examples {output.examples}"
            )

    # Not part of a study; asked for by the name of a file (docs/data.md).
    rule write_mimic_files:
        input:
            label_space="<results>/data/label_space.json",
            examples=DRAWN,
        output:
            tables=[
                "<results>/data/mimic-iv/note/discharge.csv.gz",
                "<results>/data/mimic-iv/hosp/diagnoses_icd.csv.gz",
                "<results>/data/mimic-iv/hosp/procedures_icd.csv.gz",
                "<results>/data/mimic-iv/hosp/d_icd_diagnoses.csv.gz",
                "<results>/data/mimic-iv/hosp/d_icd_procedures.csv.gz",
            ],
        log:
            "<logs>/write_mimic_files.log",
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("write_mimic_files"),
        params:
            p=parameters(),
            code=code("write_mimic_files"),
        shell:
            job(
                "write_mimic_files.py --label-space {input.label_space}"
                " --examples {input.examples} --tables {output.tables}"
            )

else:

    # The user's files are no inputs: they lie outside, and this rule says what is wrong with them.
    rule check_source:
        output:
            checked="<results>/data/checked.json",
        log:
            "<logs>/check_source.log",
        priority: 100
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("check_source"),
        params:
            p=parameters("data.source"),
            code=code("check_source"),
        shell:
            job("check_source.py --checked {output.checked}")

    rule read_source:
        input:
            checked="<results>/data/checked.json",
        output:
            documents="<results>/data/documents.parquet",
            labels="<results>/data/labels.parquet",
        log:
            "<logs>/read_source.log",
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("read_source"),
        params:
            p=parameters("data.source"),
            code=code("read_source"),
        shell:
            job(
                "read_source.py --checked {input.checked} --documents {output.documents}"
                " --labels {output.labels}"
            )

    rule choose_labels:
        input:
            documents="<results>/data/documents.parquet",
            labels="<results>/data/labels.parquet",
        output:
            label_space="<results>/data/label_space.json",
        log:
            "<logs>/choose_labels.log",
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("choose_labels"),
        params:
            p=parameters("seed", "data.world", "data.source"),
            code=code("choose_labels"),
        shell:
            job(
                "choose_labels.py --documents {input.documents} --labels {input.labels}"
                " --label-space {output.label_space}"
            )

    rule ask_documents:
        input:
            label_space="<results>/data/label_space.json",
            tokenizer="<results>/data/tokenizer.json",
            documents="<results>/data/documents.parquet",
        output:
            examples=DRAWN,
        log:
            "<logs>/ask_documents.log",
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("ask_documents"),
        params:
            p=parameters(
                "seed", "data.world", "data.splits", "data.prompt", "data.source"
            ),
            code=code("ask_documents"),
        shell:
            job(
                "ask_documents.py --label-space {input.label_space}"
                " --tokenizer {input.tokenizer} --documents {input.documents}"
                " --examples {output.examples}"
            )


if LISTS is not None:

    rule list_candidates:
        input:
            label_space="<results>/data/label_space.json",
            tokenizer="<results>/data/tokenizer.json",
            drawn=DRAWN,
        output:
            examples="<results>/data/examples.parquet",
            listing="<results>/data/listing.parquet",
        log:
            "<logs>/list_candidates.log",
        priority: 50
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("list_candidates"),
        params:
            p=parameters("seed", "data.prompt", "data.candidates"),
            code=code("list_candidates"),
        shell:
            job(
                "list_candidates.py --label-space {input.label_space}"
                " --tokenizer {input.tokenizer} --drawn {input.drawn}"
                " --examples {output.examples} --listing {output.listing}"
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
        **needs("make_twins"),
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
        listing=[] if LISTS is None else "<results>/data/listing.parquet",
    output:
        card="<results>/data/data_card.md",
    log:
        "<logs>/write_data_card.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("write_data_card"),
    params:
        p=parameters("seed", "data.world", "data.splits", *LISTING),
        code=code("write_data_card"),
    shell:
        job(
            "write_data_card.py --label-space {input.label_space}"
            " --tokenizer {input.tokenizer} --examples {input.examples} --twins {input.twins}"
            " --card {output.card}"
            + " --listing {input.listing}" * (LISTS is not None)
            + " --without-note" * STUDY.restricted
        )

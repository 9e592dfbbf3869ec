# The weights of each method, chosen on the validation notes among as many settings as any other's.


rule try_setting:
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
    output:
        trial="<results>/distil/tuning/{method}/seed{seed}/setting{number}.json",
    log:
        "<logs>/try_setting-{method}-{seed}-{number}.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("try_setting"),
    params:
        p=trial_parameters,
        code=trial_code,
    shell:
        job(
            "try_setting.py --method {wildcards.method} --number {wildcards.number}"
            " --seed {wildcards.seed}"
            " --base {input.base} --config {input.config} --pools {input.pools}"
            " --targets {input.targets} --traces {input.traces}"
            " --examples {input.examples} --label-space {input.label_space}"
            " --tokenizer {input.tokenizer} --needs {input.needs}"
            f" --checkpoint {CHECKPOINTS}/tuning-{{wildcards.method}}-{{wildcards.number}}"
            " --trial {output.trial}",
            also="src/mechdistill/distil/methods/{wildcards.method}.py",
        )


rule choose_setting:
    input:
        trials=expand(
            "<results>/distil/tuning/{{method}}/seed{seed}/setting{number}.json",
            seed=STUDY.distil.tuning.seed,
            number=range(STUDY.distil.tuning.settings),
        ),
    output:
        tuned="<results>/distil/tuning/{method}/tuned.json",
        tuning="<results>/distil/tuning/{method}/tuning.parquet",
    log:
        "<logs>/choose_setting-{method}.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("choose_setting"),
    params:
        p=parameters(),
        code=code("choose_setting"),
    shell:
        job(
            "choose_setting.py --trials {input.trials} --tuned {output.tuned}"
            " --tuning {output.tuning}"
        )

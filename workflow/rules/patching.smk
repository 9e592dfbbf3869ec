# What decisions hang on: heads patched one by one, in growing sets, and while the teacher writes.


rule check_corruptions:
    input:
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        traces="<results>/teacher/traces.parquet",
        examples="<results>/data/examples.parquet",
        twins="<results>/data/twins.parquet",
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
    output:
        manipulation="<results>/patching/manipulation.parquet",
    log:
        "<logs>/check_corruptions.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("check_corruptions"),
    params:
        p=parameters(
            "traces.early_tokens",
            "traces.max_new_tokens",
            "traces.batch_size",
            "text_encoder",
            "patching.branches_per_pass",
        ),
        code=code("check_corruptions"),
    shell:
        job(
            "check_corruptions.py --model {input.model} --config {input.config}"
            " --traces {input.traces} --examples {input.examples} --twins {input.twins}"
            " --label-space {input.label_space} --tokenizer {input.tokenizer}"
            " --manipulation {output.manipulation}"
        )


rule patch_single_heads:
    input:
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        traces="<results>/teacher/traces.parquet",
        examples="<results>/data/examples.parquet",
        twins="<results>/data/twins.parquet",
        tokenizer="<results>/data/tokenizer.json",
    output:
        single_heads="<results>/patching/single_heads.parquet",
    log:
        "<logs>/patch_single_heads.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("patch_single_heads"),
    params:
        p=parameters("patching.branches_per_pass"),
        code=code("patch_single_heads"),
    shell:
        job(
            "patch_single_heads.py --model {input.model} --config {input.config}"
            " --traces {input.traces} --examples {input.examples} --twins {input.twins}"
            " --tokenizer {input.tokenizer} --single-heads {output.single_heads}"
        )


rule patch_margin:
    input:
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        traces="<results>/teacher/traces.parquet",
        examples="<results>/data/examples.parquet",
        twins="<results>/data/twins.parquet",
        tokenizer="<results>/data/tokenizer.json",
        rankings="<results>/heads/rankings.parquet",
    output:
        margin="<results>/patching/margin.parquet",
    log:
        "<logs>/patch_margin.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("patch_margin"),
    params:
        p=parameters(
            "patching.bins",
            "patching.random_draws",
            "patching.seed",
            "patching.branches_per_pass",
        ),
        code=code("patch_margin"),
    shell:
        job(
            "patch_margin.py --model {input.model} --config {input.config}"
            " --traces {input.traces} --examples {input.examples} --twins {input.twins}"
            " --tokenizer {input.tokenizer} --rankings {input.rankings}"
            " --margin {output.margin}"
        )


rule patch_generated:
    input:
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        traces="<results>/teacher/traces.parquet",
        examples="<results>/data/examples.parquet",
        twins="<results>/data/twins.parquet",
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
        rankings="<results>/heads/rankings.parquet",
    output:
        generated="<results>/patching/generated.parquet",
    log:
        "<logs>/patch_generated.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("patch_generated"),
    params:
        p=parameters(
            "patching.generated_examples",
            "patching.generated_bins",
            "patching.random_draws",
            "patching.seed",
            "patching.batch_size",
            "traces.early_tokens",
            "traces.max_new_tokens",
            "text_encoder",
        ),
        code=code("patch_generated"),
    shell:
        job(
            "patch_generated.py --model {input.model} --config {input.config}"
            " --traces {input.traces} --examples {input.examples} --twins {input.twins}"
            " --label-space {input.label_space} --tokenizer {input.tokenizer}"
            " --rankings {input.rankings} --generated {output.generated}"
        )


rule summarise_patching:
    input:
        margin="<results>/patching/margin.parquet",
        generated="<results>/patching/generated.parquet",
        examples="<results>/data/examples.parquet",
    output:
        summary="<results>/patching/summary.parquet",
    log:
        "<logs>/summarise_patching.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("summarise_patching"),
    params:
        p=parameters(
            "patching.generated_examples", "patching.seed", "significance.bootstrap"
        ),
        code=code("summarise_patching"),
    shell:
        job(
            "summarise_patching.py --margin {input.margin}"
            " --generated {input.generated} --examples {input.examples}"
            " --summary {output.summary}"
        )


rule ablate_heads:
    input:
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        traces="<results>/teacher/traces.parquet",
        events="<results>/teacher/events.parquet",
        tokenizer="<results>/data/tokenizer.json",
    output:
        ablation="<results>/patching/ablation.parquet",
    log:
        "<logs>/ablate_heads.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("ablate_heads"),
    params:
        p=parameters(
            "patching.null_draws",
            "patching.seed",
            "patching.branches_per_pass",
            "heads.batch_size",
        ),
        code=code("ablate_heads"),
    shell:
        job(
            "ablate_heads.py --model {input.model} --config {input.config}"
            " --traces {input.traces} --events {input.events}"
            " --tokenizer {input.tokenizer} --ablation {output.ablation}"
        )


rule calibrate_heads:
    input:
        ablation="<results>/patching/ablation.parquet",
    output:
        effects="<results>/patching/head_effects.parquet",
        agreement="<results>/patching/attribution_agreement.parquet",
    log:
        "<logs>/calibrate_heads.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("calibrate_heads"),
    params:
        p=parameters(
            "patching.false_discovery",
            "heads.bootstrap",
            "heads.seed",
            "heads.pool_size",
        ),
        code=code("calibrate_heads"),
    shell:
        job(
            "calibrate_heads.py --ablation {input.ablation}"
            " --effects {output.effects} --agreement {output.agreement}"
        )


rule ablate_head_sets:
    input:
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        traces="<results>/teacher/traces.parquet",
        events="<results>/teacher/events.parquet",
        ablation="<results>/patching/ablation.parquet",
        tokenizer="<results>/data/tokenizer.json",
    output:
        sets="<results>/patching/head_sets.parquet",
    log:
        "<logs>/ablate_head_sets.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("ablate_head_sets"),
    params:
        p=parameters(
            "patching.bins",
            "patching.random_draws",
            "patching.seed",
            "patching.branches_per_pass",
        ),
        code=code("ablate_head_sets"),
    shell:
        job(
            "ablate_head_sets.py --model {input.model} --config {input.config}"
            " --traces {input.traces} --events {input.events} --ablation {input.ablation}"
            " --tokenizer {input.tokenizer} --sets {output.sets}"
        )


rule knock_in_heads:
    input:
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        traces="<results>/teacher/traces.parquet",
        events="<results>/teacher/events.parquet",
        ablation="<results>/patching/ablation.parquet",
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
    output:
        knock_in="<results>/patching/knock_in.parquet",
        pairs="<results>/patching/knock_in_pairs.parquet",
    log:
        "<logs>/knock_in_heads.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("knock_in_heads"),
    params:
        p=parameters(
            "patching.bins",
            "patching.random_draws",
            "patching.null_draws",
            "patching.seed",
            "patching.branches_per_pass",
        ),
        code=code("knock_in_heads"),
    shell:
        job(
            "knock_in_heads.py --model {input.model} --config {input.config}"
            " --traces {input.traces} --events {input.events} --ablation {input.ablation}"
            " --label-space {input.label_space} --tokenizer {input.tokenizer}"
            " --knock-in {output.knock_in} --pairs {output.pairs}"
        )


rule attend_at_events:
    input:
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        traces="<results>/teacher/traces.parquet",
        events="<results>/teacher/events.parquet",
        effects="<results>/patching/head_effects.parquet",
        examples="<results>/data/examples.parquet",
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
    output:
        attention="<results>/patching/event_attention.parquet",
    log:
        "<logs>/attend_at_events.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("attend_at_events"),
    params:
        p=parameters("patching.seed", "heads.batch_size"),
        code=code("attend_at_events"),
    shell:
        job(
            "attend_at_events.py --model {input.model} --config {input.config}"
            " --traces {input.traces} --events {input.events} --effects {input.effects}"
            " --examples {input.examples} --label-space {input.label_space}"
            " --tokenizer {input.tokenizer} --attention {output.attention}"
        )


rule probe_regions:
    input:
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        traces="<results>/teacher/traces.parquet",
        events="<results>/teacher/events.parquet",
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
    output:
        probe="<results>/patching/elicitation_probe.parquet",
    log:
        "<logs>/probe_regions.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("probe_regions"),
    params:
        p=parameters(
            "patching.probe_depth",
            "patching.seed",
            "heads.batch_size",
            "heads.bootstrap",
        ),
        code=code("probe_regions"),
    shell:
        job(
            "probe_regions.py --model {input.model} --config {input.config}"
            " --traces {input.traces} --events {input.events}"
            " --label-space {input.label_space} --tokenizer {input.tokenizer}"
            " --probe {output.probe}"
        )


rule ablate_before_events:
    input:
        model="<results>/teacher/model.safetensors",
        config="<results>/teacher/config.json",
        traces="<results>/teacher/traces.parquet",
        events="<results>/teacher/events.parquet",
        examples="<results>/data/examples.parquet",
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
    output:
        ablation="<results>/patching/elicitation_ablation.parquet",
        attention="<results>/patching/elicitation_attention.parquet",
    log:
        "<logs>/ablate_before_events.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("ablate_before_events"),
    params:
        p=parameters(
            "data.prompt",
            "patching.elicit_offsets",
            "patching.null_draws",
            "patching.seed",
            "patching.branches_per_pass",
            "heads.batch_size",
        ),
        code=code("ablate_before_events"),
    shell:
        job(
            "ablate_before_events.py --model {input.model} --config {input.config}"
            " --traces {input.traces} --events {input.events} --examples {input.examples}"
            " --label-space {input.label_space} --tokenizer {input.tokenizer}"
            " --ablation {output.ablation} --attention {output.attention}"
        )


rule calibrate_elicitation:
    input:
        ablation="<results>/patching/elicitation_ablation.parquet",
        attention="<results>/patching/elicitation_attention.parquet",
        at_events="<results>/patching/head_effects.parquet",
    output:
        effects="<results>/patching/elicitation_effects.parquet",
        sets="<results>/patching/elicitation_sets.parquet",
    log:
        "<logs>/calibrate_elicitation.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("calibrate_elicitation"),
    params:
        p=parameters("patching.false_discovery", "heads.bootstrap", "heads.seed"),
        code=code("calibrate_elicitation"),
    shell:
        job(
            "calibrate_elicitation.py --ablation {input.ablation}"
            " --attention {input.attention} --at-events {input.at_events}"
            " --effects {output.effects} --sets {output.sets}"
        )


if SWEPT:

    # Not all lengths may be possible for a teacher: a length at which no trace can be patched is
    # told, not an error.
    rule patch_listed:
        input:
            model="<results>/teacher/model.safetensors",
            config="<results>/teacher/config.json",
            label_space="<results>/data/label_space.json",
            tokenizer="<results>/data/tokenizer.json",
            drawn=DRAWN,
            rankings="<results>/heads/rankings.parquet",
        output:
            margin="<results>/patching/lists/{length}/margin.parquet",
            written="<results>/patching/lists/{length}/written.parquet",
        log:
            "<logs>/patch_listed-{length}.log",
        wildcard_constraints:
            length="[0-9]+|all",
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("patch_listed"),
        params:
            p=parameters(
                "seed",
                "data.prompt",
                "data.candidates",
                "traces.early_tokens",
                "traces.max_new_tokens",
                "traces.batch_size",
                "patching.bins",
                "patching.random_draws",
                "patching.seed",
                "patching.branches_per_pass",
            ),
            code=code("patch_listed"),
        shell:
            job(
                "patch_listed.py --model {input.model} --config {input.config}"
                " --label-space {input.label_space} --tokenizer {input.tokenizer}"
                " --drawn {input.drawn} --rankings {input.rankings}"
                " --number {wildcards.length} --margin {output.margin}"
                " --written {output.written}"
            )

    rule summarise_lists:
        input:
            margins=expand(
                "<results>/patching/lists/{length}/margin.parquet", length=LISTS.sweep
            ),
            written=expand(
                "<results>/patching/lists/{length}/written.parquet", length=LISTS.sweep
            ),
        output:
            summary="<results>/patching/lists.parquet",
        log:
            "<logs>/summarise_lists.log",
        conda:
            "../../envs/environment.yml"
        resources:
            **needs("summarise_lists"),
        params:
            p=parameters("patching.seed", "significance.bootstrap"),
            code=code("summarise_lists"),
        shell:
            job(
                "summarise_lists.py --margins {input.margins} --written {input.written}"
                " --summary {output.summary}"
            )

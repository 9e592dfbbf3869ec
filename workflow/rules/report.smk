# Tables, figures, verdicts and the page.

FIGURES = ("1", "4", "5", "7", "8", "10", "11", "12", "13", "14")


rule make_tables:
    input:
        scores="<results>/evaluate/scores.parquet",
        predictions="<results>/evaluate/predictions.parquet",
        comparisons="<results>/significance/comparisons.parquet",
        examples="<results>/data/examples.parquet",
        label_space="<results>/data/label_space.json",
    output:
        csv="<results>/report/table1.csv",
        latex="<results>/report/table1.tex",
        html="<results>/report/table1.html",
        measures="<results>/report/measures.csv",
        metrics="<results>/report/metrics.json",
    log:
        "<logs>/make_tables.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("make_tables"),
    params:
        p=parameters(
            "evaluate.precision_at", "significance.bootstrap", "significance.seed"
        ),
        code=code("make_tables"),
    shell:
        job(
            "make_tables.py --scores {input.scores} --predictions {input.predictions}"
            " --comparisons {input.comparisons} --examples {input.examples}"
            " --label-space {input.label_space} --csv {output.csv}"
            " --latex {output.latex} --html {output.html} --measures {output.measures}"
            " --metrics {output.metrics}"
        )


rule make_budget:
    input:
        budgets=expand(
            "<results>/distil/{method}/seed{seed}/budget.json",
            method=STUDY.distil.methods,
            seed=STUDY.distil.seeds,
        ),
    output:
        table="<results>/report/budget.csv",
        times="<results>/report/times.csv",
    log:
        "<logs>/make_budget.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("make_budget"),
    params:
        p=parameters(),
        code=code("make_budget"),
    shell:
        job(
            "make_budget.py --budgets {input.budgets} --table {output.table}"
            " --times {output.times}"
        )


rule draw_curves:
    input:
        curves="<results>/evaluate/curves.parquet",
    output:
        pdf="<results>/report/figure1.pdf",
        png="<results>/report/figure1.png",
        csv="<results>/report/figure1.csv",
    log:
        "<logs>/draw_curves.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("draw_curves"),
    params:
        p=parameters("distil.methods", "significance.bootstrap", "significance.seed"),
        code=code("draw_curves"),
    shell:
        job(
            "draw_curves.py --curves {input.curves} --pdf {output.pdf}"
            " --png {output.png} --csv {output.csv}"
        )


rule draw_coarse_heads:
    input:
        head_scores="<results>/heads/head_scores.parquet",
        attention_rows="<results>/heads/attention_rows.parquet",
        traces="<results>/teacher/traces.parquet",
        examples="<results>/data/examples.parquet",
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
        config="<results>/teacher/config.json",
    output:
        pdf="<results>/report/figure4.pdf",
        png="<results>/report/figure4.png",
        csv="<results>/report/figure4.csv",
    log:
        "<logs>/draw_coarse_heads.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("draw_coarse_heads"),
    params:
        p=parameters("report.worked_example"),
        code=code("draw_coarse_heads"),
    shell:
        job(
            "draw_coarse_heads.py --head-scores {input.head_scores}"
            " --attention-rows {input.attention_rows} --config {input.config} --traces {input.traces}"
            " --examples {input.examples} --label-space {input.label_space}"
            " --tokenizer {input.tokenizer} --pdf {output.pdf} --png {output.png} --csv {output.csv}"
        )


rule draw_patching:
    input:
        summary="<results>/patching/summary.parquet",
    output:
        pdf="<results>/report/figure{figure}.pdf",
        png="<results>/report/figure{figure}.png",
        csv="<results>/report/figure{figure}.csv",
    log:
        "<logs>/draw_patching-{figure}.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("draw_patching"),
    params:
        p=parameters(),
        code=code("draw_patching"),
        phase=phase_of_figure,
    shell:
        job(
            "draw_patching.py --phase {params.phase} --summary {input.summary}"
            " --pdf {output.pdf} --png {output.png} --csv {output.csv}"
        )


rule draw_refine_heads:
    input:
        head_scores="<results>/heads/head_scores.parquet",
        dynamics="<results>/heads/dynamics.parquet",
        config="<results>/teacher/config.json",
    output:
        pdf="<results>/report/figure7.pdf",
        png="<results>/report/figure7.png",
        csv="<results>/report/figure7.csv",
    log:
        "<logs>/draw_refine_heads.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("draw_refine_heads"),
    params:
        p=parameters("significance.bootstrap", "significance.seed"),
        code=code("draw_refine_heads"),
    shell:
        job(
            "draw_refine_heads.py --head-scores {input.head_scores}"
            " --dynamics {input.dynamics} --config {input.config} --pdf {output.pdf} --png {output.png} --csv {output.csv}"
        )


rule draw_head_effects:
    input:
        effects="<results>/patching/head_effects.parquet",
    output:
        pdf="<results>/report/figure10.pdf",
        png="<results>/report/figure10.png",
        csv="<results>/report/figure10.csv",
    log:
        "<logs>/draw_head_effects.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("draw_head_effects"),
    params:
        p=parameters(),
        code=code("draw_head_effects"),
    shell:
        job(
            "draw_head_effects.py --effects {input.effects} --pdf {output.pdf}"
            " --png {output.png} --csv {output.csv}"
        )


rule draw_head_sets:
    input:
        sets="<results>/patching/head_sets.parquet",
    output:
        pdf="<results>/report/figure11.pdf",
        png="<results>/report/figure11.png",
        csv="<results>/report/figure11.csv",
    log:
        "<logs>/draw_head_sets.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("draw_head_sets"),
    params:
        p=parameters("significance.bootstrap", "significance.seed"),
        code=code("draw_head_sets"),
    shell:
        job(
            "draw_head_sets.py --sets {input.sets} --pdf {output.pdf}"
            " --png {output.png} --csv {output.csv}"
        )


rule draw_knock_in:
    input:
        knock_in="<results>/patching/knock_in.parquet",
    output:
        pdf="<results>/report/figure12.pdf",
        png="<results>/report/figure12.png",
        csv="<results>/report/figure12.csv",
    log:
        "<logs>/draw_knock_in.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("draw_knock_in"),
    params:
        p=parameters("significance.bootstrap", "significance.seed"),
        code=code("draw_knock_in"),
    shell:
        job(
            "draw_knock_in.py --knock-in {input.knock_in} --pdf {output.pdf}"
            " --png {output.png} --csv {output.csv}"
        )


rule draw_event_attention:
    input:
        attention="<results>/patching/event_attention.parquet",
    output:
        pdf="<results>/report/figure13.pdf",
        png="<results>/report/figure13.png",
        csv="<results>/report/figure13.csv",
    log:
        "<logs>/draw_event_attention.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("draw_event_attention"),
    params:
        p=parameters("significance.bootstrap", "significance.seed"),
        code=code("draw_event_attention"),
    shell:
        job(
            "draw_event_attention.py --attention {input.attention} --pdf {output.pdf}"
            " --png {output.png} --csv {output.csv}"
        )


rule draw_elicitation:
    input:
        probe="<results>/patching/elicitation_probe.parquet",
        effects="<results>/patching/elicitation_effects.parquet",
    output:
        pdf="<results>/report/figure14.pdf",
        png="<results>/report/figure14.png",
        csv="<results>/report/figure14.csv",
    log:
        "<logs>/draw_elicitation.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("draw_elicitation"),
    params:
        p=parameters(),
        code=code("draw_elicitation"),
    shell:
        job(
            "draw_elicitation.py --probe {input.probe} --effects {input.effects}"
            " --pdf {output.pdf} --png {output.png} --csv {output.csv}"
        )


# What longer candidate lists do is told where they were swept.
SWEPT_LISTS = "<results>/patching/lists.parquet" if SWEPT else []


rule judge_claims:
    input:
        head_scores="<results>/heads/head_scores.parquet",
        rankings="<results>/heads/rankings.parquet",
        reliability="<results>/heads/reliability.parquet",
        dynamics="<results>/heads/dynamics.parquet",
        attention_rows="<results>/heads/attention_rows.parquet",
        margin="<results>/patching/margin.parquet",
        generated="<results>/patching/generated.parquet",
        manipulation="<results>/patching/manipulation.parquet",
        scores="<results>/evaluate/scores.parquet",
        curves="<results>/evaluate/curves.parquet",
        corpus="<results>/evaluate/corpus.parquet",
        comparisons="<results>/significance/comparisons.parquet",
        events="<results>/teacher/events.parquet",
        ablation="<results>/patching/ablation.parquet",
        head_effects="<results>/patching/head_effects.parquet",
        attribution="<results>/patching/attribution_agreement.parquet",
        head_sets="<results>/patching/head_sets.parquet",
        knock_in="<results>/patching/knock_in.parquet",
        event_attention="<results>/patching/event_attention.parquet",
        elicitation_probe="<results>/patching/elicitation_probe.parquet",
        elicitation_sets="<results>/patching/elicitation_sets.parquet",
        traces="<results>/teacher/traces.parquet",
        examples="<results>/data/examples.parquet",
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
        budgets=expand(
            "<results>/distil/{method}/seed{seed}/budget.json",
            method=STUDY.distil.methods,
            seed=STUDY.distil.seeds,
        ),
        config="<results>/teacher/config.json",
        lists=SWEPT_LISTS,
        recovery=RECOVERY,
    output:
        claims="<results>/report/claims.csv",
    log:
        "<logs>/judge_claims.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("judge_claims"),
    params:
        p=parameters(
            "study",
            "distil.methods",
            "distil.seeds",
            "distil.student.family",
            "heads.pool_size",
            "patching.bins",
            "significance.bootstrap",
            "significance.seed",
        ),
        code=code("judge_claims"),
    shell:
        job(
            "judge_claims.py --head-scores {input.head_scores}"
            " --rankings {input.rankings} --reliability {input.reliability}"
            " --dynamics {input.dynamics} --attention-rows {input.attention_rows}"
            " --margin {input.margin} --generated {input.generated}"
            " --manipulation {input.manipulation} --scores {input.scores}"
            " --curves {input.curves} --corpus {input.corpus}"
            " --comparisons {input.comparisons} --events {input.events}"
            " --ablation {input.ablation} --head-effects {input.head_effects}"
            " --attribution {input.attribution} --head-sets {input.head_sets}"
            " --knock-in {input.knock_in} --event-attention {input.event_attention}"
            " --elicitation-probe {input.elicitation_probe}"
            " --elicitation-sets {input.elicitation_sets}"
            " --config {input.config} --traces {input.traces}"
            " --examples {input.examples} --label-space {input.label_space}"
            " --tokenizer {input.tokenizer} --budgets {input.budgets}"
            " --claims {output.claims}"
            + " --lists {input.lists}" * SWEPT
            + " --recovery {input.recovery}" * bool(RECOVERY)
        )


# The page tells of a checkpoint what fine-tuning changed.
ORIGIN = (
    []
    if STUDY.teacher.checkpoint is None
    else [
        "<results>/teacher/quality.csv",
        "<results>/teacher/head_agreement.csv",
    ]
)


rule write_report:
    input:
        claims="<results>/report/claims.csv",
        table1="<results>/report/table1.html",
        measures="<results>/report/measures.csv",
        summary="<results>/patching/summary.parquet",
        manipulation="<results>/patching/manipulation.parquet",
        causal_agreement="<results>/heads/causal_agreement.parquet",
        rankings="<results>/heads/rankings.parquet",
        head_scores="<results>/heads/head_scores.parquet",
        attention_rows="<results>/heads/attention_rows.parquet",
        predictions="<results>/evaluate/predictions.parquet",
        scores="<results>/evaluate/scores.parquet",
        corpus="<results>/evaluate/corpus.parquet",
        comparisons="<results>/significance/comparisons.parquet",
        definitions="<results>/evaluate/definitions.json",
        traces="<results>/teacher/traces.parquet",
        examples="<results>/data/examples.parquet",
        label_space="<results>/data/label_space.json",
        tokenizer="<results>/data/tokenizer.json",
        data_card="<results>/data/data_card.md",
        events="<results>/teacher/events.parquet",
        head_effects="<results>/patching/head_effects.parquet",
        attribution="<results>/patching/attribution_agreement.parquet",
        head_sets="<results>/patching/head_sets.parquet",
        knock_in="<results>/patching/knock_in.parquet",
        knock_in_pairs="<results>/patching/knock_in_pairs.parquet",
        event_attention="<results>/patching/event_attention.parquet",
        elicitation_probe="<results>/patching/elicitation_probe.parquet",
        elicitation_sets="<results>/patching/elicitation_sets.parquet",
        origin=ORIGIN,
        lists=SWEPT_LISTS,
        recovery=RECOVERY,
        budgets=expand(
            "<results>/distil/{method}/seed{seed}/budget.json",
            method=STUDY.distil.methods,
            seed=STUDY.distil.seeds,
        ),
        figures=expand("<results>/report/figure{figure}.png", figure=FIGURES),
        config="<results>/teacher/config.json",
    output:
        report="<results>/report/report.html",
        findings="<results>/report/findings.txt",
    log:
        "<logs>/write_report.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("write_report"),
    params:
        p=parameters(
            "study",
            "seed",
            "data",
            "text_encoder",
            "teacher",
            "traces",
            "heads",
            "patching",
            "distil",
            "evaluate",
            "significance",
            "report",
        ),
        code=code("write_report"),
    shell:
        job(
            "write_report.py --claims {input.claims} --table1 {input.table1}"
            " --measures {input.measures} --summary {input.summary}"
            " --manipulation {input.manipulation}"
            " --causal-agreement {input.causal_agreement} --rankings {input.rankings}"
            " --head-scores {input.head_scores} --attention-rows {input.attention_rows}"
            " --predictions {input.predictions} --scores {input.scores}"
            " --corpus {input.corpus} --comparisons {input.comparisons}"
            " --definitions {input.definitions} --config {input.config} --traces {input.traces}"
            " --examples {input.examples} --label-space {input.label_space}"
            " --tokenizer {input.tokenizer} --data-card {input.data_card}"
            " --events {input.events} --head-effects {input.head_effects}"
            " --attribution {input.attribution} --head-sets {input.head_sets}"
            " --knock-in {input.knock_in} --knock-in-pairs {input.knock_in_pairs}"
            " --event-attention {input.event_attention}"
            " --elicitation-probe {input.elicitation_probe}"
            " --elicitation-sets {input.elicitation_sets}"
            " --origin {input.origin}"
            " --budgets {input.budgets} --figures {input.figures}"
            " --report {output.report} --findings {output.findings}"
            + " --lists {input.lists}" * SWEPT
            + " --recovery {input.recovery}" * bool(RECOVERY)
        )


rule report:
    input:
        page="<results>/report/report.html",
        findings="<results>/report/findings.txt",
        claims="<results>/report/claims.csv",
        budget="<results>/report/budget.csv",
        times="<results>/report/times.csv",
        tables=expand("<results>/report/table1.{kind}", kind=("csv", "tex", "html")),
        figures=expand(
            "<results>/report/figure{figure}.{kind}",
            figure=FIGURES,
            kind=("pdf", "png", "csv"),
        ),

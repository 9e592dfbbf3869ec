# The report of a joined study, from the results of its members, which are studies of their own:
# nothing here makes them (mechdistill.reproduce runs them in turn).

TABLES = range(1, 6)


def of_members(name):
    """A file of every member, in their order."""
    return [str(member.file(name)) for member in STUDY.members]


rule compare_students:
    input:
        scores=of_members("scores"),
        predictions=of_members("predictions"),
        budgets=of_members("budgets"),
        examples=of_members("examples"),
        label_space=of_members("label_space"),
    output:
        comparisons="<results>/significance/comparisons.parquet",
    log:
        "<logs>/compare_students.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("compare_students"),
    params:
        p=parameters(
            "members",
            "data_set",
            "student",
            "distil.methods",
            "significance.bootstrap",
            "significance.alpha",
            "significance.seed",
        ),
        code=code("compare_students"),
    shell:
        job(
            "compare_students.py --scores {input.scores} --predictions {input.predictions}"
            " --budgets {input.budgets} --examples {input.examples}"
            " --label-space {input.label_space} --comparisons {output.comparisons}"
        )


rule join_tables:
    input:
        measures=of_members("measures"),
        member_comparisons=of_members("comparisons"),
        comparisons="<results>/significance/comparisons.parquet",
    output:
        csv=expand("<results>/report/table{number}.csv", number=TABLES),
        latex=expand("<results>/report/table{number}.tex", number=TABLES),
        html=expand("<results>/report/table{number}.html", number=TABLES),
        detectable="<results>/report/detectable.csv",
    log:
        "<logs>/join_tables.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("join_tables"),
    params:
        p=parameters("members", "data_set", "student", "distil.methods"),
        code=code("join_tables"),
    shell:
        job(
            "join_tables.py --measures {input.measures}"
            " --member-comparisons {input.member_comparisons}"
            " --comparisons {input.comparisons} --csv {output.csv} --latex {output.latex}"
            " --html {output.html} --detectable {output.detectable}"
        )


rule join_budgets:
    input:
        budgets=of_members("budgets"),
        times=of_members("times"),
    output:
        table="<results>/report/budget.csv",
        times="<results>/report/times.csv",
    log:
        "<logs>/join_budgets.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("join_budgets"),
    params:
        p=parameters("members", "data_set", "student"),
        code=code("join_budgets"),
    shell:
        job(
            "join_budgets.py --budgets {input.budgets} --times {input.times}"
            " --table {output.table} --summary {output.times}"
        )


rule judge_joined_claims:
    input:
        member_claims=of_members("claims"),
        comparisons="<results>/significance/comparisons.parquet",
    output:
        claims="<results>/report/claims.csv",
    log:
        "<logs>/judge_joined_claims.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("judge_joined_claims"),
    params:
        p=parameters("study", "members", "data_set", "student", "distil.seeds"),
        code=code("judge_joined_claims"),
    shell:
        job(
            "judge_joined_claims.py --member-claims {input.member_claims}"
            " --comparisons {input.comparisons} --claims {output.claims}"
        )


rule write_joined_report:
    input:
        measures=of_members("measures"),
        label_space=of_members("label_space"),
        member_reports=of_members("report"),
        tables=expand("<results>/report/table{number}.html", number=TABLES),
        comparisons="<results>/significance/comparisons.parquet",
        claims="<results>/report/claims.csv",
        budgets="<results>/report/budget.csv",
        detectable="<results>/report/detectable.csv",
    output:
        report="<results>/report/report.html",
        findings="<results>/report/findings.txt",
    log:
        "<logs>/write_joined_report.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("write_joined_report"),
    params:
        p=parameters(
            "study",
            "members",
            "left_out",
            "data_set",
            "student",
            "distil.methods",
            "distil.seeds",
        ),
        code=code("write_joined_report"),
    shell:
        job(
            "write_joined_report.py --measures {input.measures}"
            " --label-space {input.label_space} --member-reports {input.member_reports}"
            " --tables {input.tables} --comparisons {input.comparisons}"
            " --claims {input.claims} --budgets {input.budgets}"
            " --detectable {input.detectable} --report {output.report}"
            " --findings {output.findings}"
        )


rule report:
    input:
        page="<results>/report/report.html",
        findings="<results>/report/findings.txt",
        claims="<results>/report/claims.csv",
        budget="<results>/report/budget.csv",
        times="<results>/report/times.csv",
        detectable="<results>/report/detectable.csv",
        tables=expand(
            "<results>/report/table{number}.{kind}",
            number=TABLES,
            kind=("csv", "tex", "html"),
        ),

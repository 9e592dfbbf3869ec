# Pages about the finished results: whether they fit together, and where each number comes from.


rule audit_results:
    input:
        rules.report.input,
    output:
        audit="<results>/audit/audit.html",
        trace="<results>/audit/trace.html",
    log:
        "<logs>/audit_results.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("audit_results"),
    params:
        p=parameters("study"),
        code=code("audit_results"),
    shell:
        job("audit_results.py --audit {output.audit} --trace {output.trace}")


rule derive_numbers:
    input:
        rules.report.input,
    output:
        numbers="<results>/audit/numbers.html",
    log:
        "<logs>/derive_numbers.log",
    conda:
        "../../envs/environment.yml"
    resources:
        **needs("derive_numbers"),
    params:
        p=parameters("study"),
        code=code("derive_numbers"),
    shell:
        job("derive_numbers.py --numbers {output.numbers}")


rule audit:
    input:
        rules.audit_results.output,
        rules.derive_numbers.output,

# The study as a graph of files: what every rule needs, makes and depends on.
#
#   snakemake --cores 2                          the default study, `embedded` (params.yaml)
#   snakemake --cores 2 --config study=smoke     another one (studies/smoke.yaml)
#   snakemake --config study=embedded-full       the joined report of finished studies
#   snakemake -n                                 what would run, and why
#   snakemake --cores 2 audit                    derive the numbers of the report once more, too
#   snakemake --profile slurm                    on a Slurm cluster
#
# Every rule runs one script of workflow/scripts through the run wrapper, which leaves a record in
# provenance/runs. `params.p` holds, as canonical JSON, exactly the parameters that the script may
# read; `params.code` is the fingerprint of the code it imports. A job runs again when one of them
# changes, or one of its inputs, and not otherwise.

import sys
from pathlib import Path
from shlex import quote

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

min_version("9.18")

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT / "src"))

from mechdistill.errors import InputError
from mechdistill.joined_study import is_joined, load_joined_study
from mechdistill.provenance.metadata import refuse_unrecorded_results
from mechdistill.provenance.queued import refuse_jobs_in_queue
from mechdistill.provenance.writable import refuse_unwritable
from mechdistill.study import load_study

# Jobs use this checkout and this Python, whatever else is installed.
shell.prefix(
    f"export PATH={quote(str(Path(sys.executable).parent))}:$PATH"
    f" PYTHONPATH={quote(str(ROOT / 'src'))}; "
)

try:
    JOINED = is_joined(config, ROOT)
    if JOINED:
        STUDY = load_joined_study(config, ROOT)
        STUDY = STUDY.without(STUDY.left_out_here(ROOT))
        STUDY.refuse_unfinished(ROOT)
    else:
        STUDY = load_study(config, ROOT)
    if workflow.is_main_process:
        refuse_unrecorded_results(ROOT, STUDY.study)
        if not workflow.output_settings.dryrun:
            refuse_unwritable(ROOT, STUDY.study)
except InputError as error:
    raise WorkflowError(str(error)) from None


onstart:
    try:
        refuse_jobs_in_queue(ROOT)
    except InputError as error:
        raise WorkflowError(str(error)) from None


pathvars:
    results=f"results/{STUDY.study}",
    logs=f"logs/{STUDY.study}",


include: "workflow/rules/jobs.smk"


if JOINED:

    for NAME, REASON in STUDY.left_out.items():
        if workflow.is_main_process:
            print(f"{NAME} is left out: {REASON}", file=sys.stderr)

    include: "workflow/rules/joined.smk"

else:

    include: "workflow/rules/methods.smk"
    include: "workflow/rules/models.smk"

    wildcard_constraints:
        method="|".join(TRAINED_METHODS),
        number="[0-9]+",
        seed="[0-9]+",
        model="|".join(MODELS),
        figure="5|8",

    include: "workflow/rules/data.smk"
    include: "workflow/rules/teacher.smk"
    include: "workflow/rules/heads.smk"
    include: "workflow/rules/patching.smk"
    include: "workflow/rules/rationales.smk"
    include: "workflow/rules/tuning.smk"
    include: "workflow/rules/distil.smk"
    include: "workflow/rules/evaluate.smk"
    include: "workflow/rules/recovery.smk"
    include: "workflow/rules/significance.smk"
    include: "workflow/rules/report.smk"


include: "workflow/rules/audit.smk"


rule all:
    default_target: True
    input:
        rules.report.input,
        rules.audit_results.output,

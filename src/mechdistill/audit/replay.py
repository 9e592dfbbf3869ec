"""Random jobs run once more, on the inputs that lie there: they must write the same bytes.

The only check that finds a file whose record, notes and all later hashes were made to fit.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from mechdistill.audit.again import other_outputs, run_again, workplace
from mechdistill.audit.finding import Finding
from mechdistill.audit.record import Record, make_again
from mechdistill.errors import InputError
from mechdistill.reproduce import warm_process

TIMED = frozenset({"budget.json"})
"""Files that hold how long their job took: other bytes each time."""


def replayed(
    records: Sequence[Record], root: Path, count: int, *, restricted: bool = False
) -> Iterator[Finding]:
    """Run `count` jobs again, drawn anew on each call so that nobody can know which.

    Of restricted data no message of a script is shown.
    """
    draw = random.SystemRandom()
    for record in draw.sample(records, min(count, len(records))):
        with workplace() as folder, warm_process(root) as environment:
            try:
                run_again(record, root, folder, environment)
            except InputError as error:
                what = error.what.replace(f"{root}/", "")
                said = f"the job {record.job} does not run again" if restricted else what
                yield Finding("REPLAY", record.path, said, make_again(record))
                continue
            for path in other_outputs(record, root, folder):
                if Path(path).name not in TIMED:
                    yield Finding(
                        "REPLAY",
                        path,
                        f"the job {record.job}, run again, wrote other bytes",
                        make_again(record),
                    )

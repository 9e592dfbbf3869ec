"""Memory and time of the MIMIC-IV loader on invented tables of the published size.

    python benchmarks/loader_memory.py FOLDER [--notes 331793]

Writes the tables into FOLDER (about 5 GB of text, packed), then checks and reads them, each in a
process of its own, and prints what they took. All admissions have ICD-10 codes here, in truth about
four of ten do: so that memory and time are above those of the real files.
"""

import argparse
import multiprocessing
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from mechdistill.data.sources import mimic_iv
from mechdistill.data.sources.collection import write_documents
from mechdistill.data.sources.mimic import check_mimic, mimic_collection, open_mimic_iv
from mechdistill.data.sources.mimic_iv_files import Stay, write_mimic_iv

NOTES = 331_793
DIAGNOSES_A_NOTE, PROCEDURES_A_NOTE = 14, 2  # 4.76 and 0.67 million rows
CODES, PROCEDURE_CODES = 16_155, 9_943
SETS = 2_000  # of codes, drawn from
STRETCHES, STRETCH_WORDS = 4_000, 90
STRETCHES_A_NOTE = (8, 30)  # about 10,000 characters
LEAST = 10


def stays(notes: int) -> Iterator[Stay]:
    """Notes of random words; codes by Zipf's law."""
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    words = ["".join(rng.choice(letters, rng.integers(2, 9))) for _ in range(8_000)]
    stretches = [" ".join(rng.choice(words, STRETCH_WORDS)) + ".\n" for _ in range(STRETCHES)]
    diagnoses = sets(codes("{}{:04d}", CODES), DIAGNOSES_A_NOTE, rng)
    procedures = sets(codes("{}B{:04d}Z", PROCEDURE_CODES), PROCEDURES_A_NOTE, rng)
    random = Random(0)  # faster one by one than numpy
    for number in range(notes):
        count = random.randrange(*STRETCHES_A_NOTE)
        text = "".join(random.choices(stretches, k=count))
        yield Stay(
            10_000_000 + number // 2,
            20_000_000 + number,
            f"Unit No: ___ {number}\n{text}",
            random.choice(diagnoses),
            random.choice(procedures),
        )


def codes(form: str, count: int) -> list[str]:
    """Codes of a shape, letter by letter."""
    return [form.format("ABCDEFGHJK"[n // 5_000], n % 5_000) for n in range(count)]


def sets(from_codes: list[str], count: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
    """Sets of distinct codes, the first codes far more often."""
    drawn = (np.unique((len(from_codes) ** rng.random(count)).astype(int) - 1) for _ in range(SETS))
    return [tuple(from_codes[place] for place in places) for places in drawn]


def check(folder: Path) -> None:
    """What rule check_source does."""
    print(check_mimic(open_mimic_iv(folder, None), LEAST).counts, flush=True)


def read(folder: Path) -> None:
    """What rule read_source does."""
    with mimic_collection(open_mimic_iv(folder, None), LEAST, folder) as found:
        write_documents(folder / "documents.parquet", found.documents, found.tally)


def measured(work, folder: Path) -> None:
    """Run in a process of its own; print seconds and the largest memory."""
    begin = time.monotonic()
    work(folder)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(
        f"{work.__name__}: {time.monotonic() - begin:.0f} s, {used.ru_utime + used.ru_stime:.0f} "
        f"CPU-s, at most {used.ru_maxrss / 2**10:.0f} MiB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--notes", type=int, default=NOTES)
    options = parser.parse_args()
    paths = {name: options.folder / f"{name}.csv.gz" for name in mimic_iv.TABLES}
    if not all(path.exists() for path in paths.values()):
        write_mimic_iv(paths, stays(options.notes), {}, {})
    for work in (check, read):
        process = multiprocessing.get_context("spawn").Process(
            target=measured, args=(work, options.folder)
        )
        process.start()
        process.join()


if __name__ == "__main__":
    main()

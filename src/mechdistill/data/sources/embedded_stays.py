"""The notes of an embedded study as admissions, to be written in MIMIC-IV's format."""

from collections.abc import Iterator, Sequence

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.data.prompts import CANDIDATES
from mechdistill.data.sources.mimic_iv_files import Stay

FIRST_PATIENT, FIRST_ADMISSION = 10_000_000, 20_000_000
STAYS_A_PATIENT = 2


def stays_of(examples: Sequence[Example], space: LabelSpace) -> Iterator[Stay]:
    """The notes of a study, without their candidates, as admissions of invented patients.

    Patients have two admissions, both of one split. Headings begin lines.
    """
    wording = space.wording
    headings = (wording.start, wording.course, wording.absences, wording.remarks)
    patients: dict[str, int] = {}
    numbers: dict[str, int] = {}
    for place, example in enumerate(examples):
        count = numbers[example.split] = numbers.get(example.split, -1) + 1
        if count % STAYS_A_PATIENT == 0:
            patients[example.split] = FIRST_PATIENT + place
        prompt = example.prompt
        note = prompt[max(0, prompt.rfind(wording.start)) : prompt.rfind(CANDIDATES)].strip()
        for heading in headings:
            note = note.replace(f" {heading}", f"\n\n{heading}")
        yield Stay(
            patients[example.split],
            FIRST_ADMISSION + place,
            f"Name: ___\n\n{note}",
            tuple(code.replace(".", "") for code in example.gold),
        )


def titles_of(space: LabelSpace) -> dict[str, str]:
    """Descriptions of the labels by code without its dot."""
    return {label.code.replace(".", ""): label.description for label in space.labels}

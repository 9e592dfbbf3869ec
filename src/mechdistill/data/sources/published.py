"""Counts that publications and the data's own checks give, by data set and version.

Shown beside what a user's files hold; a difference is told and stops nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Counts = Mapping[str, int]


@dataclass(frozen=True)
class Compared:
    """A count of a user's data beside the published one (None: none is published)."""

    what: str
    found: int
    published: int | None


MIMIC_IV: Mapping[str, Counts] = {
    # rows: validate.sql of MIT-LCP/mimic-code at 5dc61171 (2.2) and later (3.1); documents and
    # codes: JoakimEdin/medical-coding-reproducibility, its split file, and its issue 17 (3.0)
    "2.2": {
        "rows of note/discharge": 331_793,
        "rows of hosp/diagnoses_icd": 4_756_326,
        "rows of hosp/procedures_icd": 669_186,
        "rows of hosp/d_icd_diagnoses": 109_775,
        "rows of hosp/d_icd_procedures": 85_257,
        "documents": 122_279,
        "codes": 7_942,
        "documents of the published split: training": 89_099,
        "documents of the published split: validation": 13_378,
        "documents of the published split: test": 19_802,
    },
    "3.0": {
        "codes": 7_940,
        "codes of diagnoses": 5_802,
        "codes of procedures": 2_138,
        "codes of diagnoses before the least count": 16_155,
        "codes of procedures before the least count": 9_943,
    },
    "3.1": {
        "rows of note/discharge": 331_793,
        "rows of hosp/diagnoses_icd": 6_364_488,
        "rows of hosp/procedures_icd": 859_655,
        "rows of hosp/d_icd_diagnoses": 112_107,
        "rows of hosp/d_icd_procedures": 86_423,
    },
}

MIMIC_III: Mapping[str, Counts] = {
    # rows: the same checks of version 1.4; the rest: Mullenbach et al. 2018, files of caml-mimic
    "1.4": {
        "rows of NOTEEVENTS": 2_083_180,
        "rows of DIAGNOSES_ICD": 651_047,
        "rows of PROCEDURES_ICD": 240_095,
        "rows of D_ICD_DIAGNOSES": 14_567,
        "rows of D_ICD_PROCEDURES": 3_882,
        "documents": 52_726,
        "codes, historical": 8_922,
        "documents of the published split: training": 47_723,
        "documents of the published split: validation": 1_631,
        "documents of the published split: test": 3_372,
    }
}

EXTREME: Mapping[str, Counts] = {
    # The repository's page; DECAF's configuration for the number of labels.
    "LF-WikiSeeAlso-320K": {
        "training documents": 693_082,
        "test documents": 177_515,
        "labels": 312_330,
    },
    "LF-Wikipedia-500K": {
        "training documents": 1_813_391,
        "test documents": 783_743,
        "labels": 501_070,
    },
}


def compare(found: Counts, published: Counts) -> list[Compared]:
    """Every count found, in its order, beside the published one."""
    return [Compared(what, number, published.get(what)) for what, number in found.items()]


def other_version(found: Counts, tables: Mapping[str, Counts], version: str) -> str | None:
    """Another version whose published rows are those found, where the named one's are not."""

    def rows_differ(counts: Counts) -> bool:
        return any(found[what] != n for what, n in counts.items() if what in found)

    said = {name: counts for name, counts in tables.items() if set(counts) & set(found)}
    if version in said and not rows_differ(said[version]):
        return None
    return next((name for name, c in said.items() if name != version and not rows_differ(c)), None)

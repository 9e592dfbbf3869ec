"""The words around findings and cues: one wording a kind of text.

A label space names its wording; notes, vocabulary and twins take their words from there.
"""

from dataclasses import dataclass, replace

from mechdistill.errors import InputError

Sentence = tuple[str, ...]


@dataclass(frozen=True)
class Wording:
    """Headings, sentences and indifferent words of the notes of a world.

    `notes` says in a report what they are. In `sentences` "e" and "f" stand for a first and a
    further finding, "c" for a cue, FOUND, CAME and SOURCES for one of the words of that list; all
    else stands for itself. Words of one list may stand for each other.
    """

    notes: str
    start: str
    course: str
    absences: str
    remarks: str
    past: str
    absent: str
    fillers: tuple[str, ...]
    neutral_cues: tuple[str, ...]
    found: tuple[str, ...]
    came: tuple[str, ...]
    sources: tuple[str, ...]
    sentences: tuple[Sentence, ...]

    @property
    def lists(self) -> dict[str, tuple[str, ...]]:
        """The lists that sentences name."""
        return {"FOUND": self.found, "CAME": self.came, "SOURCES": self.sources}

    @property
    def indifferent(self) -> tuple[tuple[str, ...], ...]:
        """The lists whose words decide nothing."""
        return (self.found, self.came, self.sources, self.fillers, self.neutral_cues)

    @property
    def words(self) -> frozenset[str]:
        """Everything that a note says whatever it is about."""
        own = (self.start, self.course, self.absences, self.remarks, self.past, self.absent)
        parts = {part for sentence in self.sentences for part in sentence}
        return frozenset({*own, *parts, *(word for words in self.indifferent for word in words)})


NEUTRAL_WORDS = (
    "well",
    "today",
    "so far",
    "at present",
    "as it was",
    "in this way",
    "as it was before",
    "at this time only",
    "as it was some time ago",
    "as far as is known now",
    "as far as is known at this time",
    "as far as is known from all that was told",
    "as far as is known from all that was told at this time",
    "in this way and in no other as far as is known at this time",
)
"""Say nothing; behind a neutral phrase or a cue they make it longer (see `twins`)."""

CLINICAL = Wording(
    notes="synthetic notes with real ICD-10-CM codes",
    start="History:",
    course="Course:",
    absences="Absent:",
    remarks="General:",
    past="past",
    absent="no",
    fillers=(
        "appetite preserved",
        "sleeping well",
        "weight stable",
        "mobility unchanged",
        "afebrile",
        "vital signs stable",
        "good oral intake",
        "comfortable at rest",
    ),
    neutral_cues=("as described", "of this kind", "under observation", "as before"),
    found=("noted", "seen", "found", "observed"),
    came=("admitted", "referred", "presenting", "seen today"),
    sources=("examination", "imaging", "workup", "review"),
    sentences=(
        ("CAME", "with", "e", "and", "e", ",", "c", "on", "SOURCES", "."),
        ("e", "and", "e", "FOUND", ",", "c", "."),
        ("e", "FOUND", "on", "SOURCES", ";", "c", "."),
        ("CAME", "for", "e", ";", "f", ",", "FOUND", "c", "."),
        ("c", "on", "SOURCES", ",", "with", "e", "."),
    ),
)

ENCYCLOPEDIC = Wording(
    notes="synthetic digests of FOLDOC's documents with their real related titles",
    start="Elsewhere:",
    course="Article:",
    absences="Unmentioned:",
    remarks="Style:",
    past="about",
    absent="no",
    fillers=(
        "plainly told",
        "briefly told",
        "with an example",
        "without examples",
        "from memory",
        "from print",
        "recently revised",
        "never revised",
    ),
    neutral_cues=("of that sort", "and others", "among other things", "and so on"),
    found=("mentioned", "named", "described", "cited"),
    came=("introduced", "outlined", "explained", "presented"),
    sources=("overview", "outset", "comparison", "appendix"),
    sentences=(
        ("CAME", "by", "e", "and", "e", ",", "c", "in", "SOURCES", "."),
        ("e", "and", "e", "FOUND", ",", "c", "."),
        ("e", "FOUND", "in", "SOURCES", ";", "c", "."),
        ("CAME", "through", "e", ";", "f", ",", "FOUND", "c", "."),
        ("c", "in", "SOURCES", ",", "by", "e", "."),
    ),
)

# Of documents that the user brings: base students read made-up texts in these words.
BROUGHT = {
    name: replace(wording, notes="documents that the user brought")
    for name, wording in (("brought clinical", CLINICAL), ("brought", ENCYCLOPEDIC))
}

_WORDINGS = {"clinical": CLINICAL, "encyclopedic": ENCYCLOPEDIC, **BROUGHT}
DEFAULT_WORDING = "clinical"


def wording_of(name: str) -> Wording:
    """The wording of that name; InputError if there is none."""
    if name not in _WORDINGS:
        raise InputError(
            f"there is no wording {name!r}", f"name one of {', '.join(sorted(_WORDINGS))}"
        )
    return _WORDINGS[name]

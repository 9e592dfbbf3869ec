"""Discriminating qualifiers ("cues") mined from ICD-10-CM descriptions by a small lexicon.

A cue is what tells a leaf code from its siblings: severity, acuity, course, type, stage, site,
cause, company ("with exacerbation", "without bleeding") and side. Matches are taken in the order of
`PATTERNS`; matched text is consumed, so that "with acute cor pulmonale" is not read as acuity.
"""

import re
from dataclasses import dataclass

MAX_CUE_WORDS = 9

_HEDGES = re.compile(r"\b(unspecified|other|not otherwise specified|nos|in diseases classified)\b")
_BRACKETS = re.compile(r"\([^)]*\)|\[[^\]]*\]")
_STOP_WORDS = frozenset({"of", "and", "the", "or", "with", "without", "in", "to", "as", "s"})
_TAIL = r"[^,]+?(?=,| with | without | right | left | bilateral|$)"


def _any_of(phrases: str) -> re.Pattern[str]:
    """Pattern of any of the phrases, which are parted by semicolons; earlier ones win."""
    alternatives = "|".join(re.escape(phrase.strip()) for phrase in phrases.split(";"))
    return re.compile(rf"\b(?:{alternatives})\b")


# (kind, pattern). The phrase is the matched text, so every cue word stands in the description.
PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("ignored", _any_of("not specified as recurrent")),
    ("phase", _any_of("not having achieved remission")),
    ("phase", re.compile(r"\bin (?:partial |full )?(?:remission|relapse)\b")),
    ("site", _any_of("left sided colitis; pancolitis; proctitis; rectosigmoiditis")),
    ("company", _any_of("uncomplicated")),
    ("company", re.compile(r"\bwithout " + _TAIL)),
    ("company", re.compile(r"\bwith " + _TAIL)),
    ("cause", re.compile(r"\b(?:due to|from) [^,]+?(?=,| with | without |$)")),
    ("stage", re.compile(r"\bstage \d\w?\b")),
    ("severity", _any_of("mild; moderate; severe; morbid")),
    ("acuity", _any_of("acute on chronic; acute and chronic; acute and subacute")),
    ("acuity", _any_of("subacute; acute; chronic")),
    ("course", _any_of("not intractable; intractable; recurrent; intermittent; persistent")),
    ("type", _any_of("combined systolic and diastolic; systolic; diastolic")),
    (
        "type",
        _any_of("unilateral; primary; idiopathic; post-traumatic; septic; saddle; fat; cement"),
    ),
    ("type", _any_of("alcohol induced; drug induced; lead-induced; biliary; alcoholic")),
    (
        "type",
        _any_of("superficial; atrophic; interstitial; follicular; atopic; toxic; serous; mucoid"),
    ),
    ("type", _any_of("allergic; mucopurulent; cortical; nuclear; incipient; morgagnian; ruptured")),
    ("type", _any_of("localization-related; generalized; absence; symptomatic")),
    ("type", _any_of("maxillary; frontal; ethmoidal; sphenoidal")),
    ("type", _any_of("myeloblastic; myelomonocytic; promyelocytic")),
    ("site", _any_of("of small intestine; of large intestine")),
    ("site", re.compile(r"\bof (?:the )?(?:ascending aorta|aortic arch)\b")),
    ("site", _any_of("of neck; of trunk; of face; of buttock; of groin; of chest wall")),
    ("side", re.compile(r"\b(?:right|left) (?:\w+ )?\w+\b")),
    ("side", _any_of("right; left; bilateral")),
)
_BEFORE_NAME = ("severity", "acuity", "course", "type")
_ORDER = (*_BEFORE_NAME, "site", "stage", "phase", "cause", "company", "side")


@dataclass(frozen=True)
class Cue:
    """Qualifier words before and after the name of the disease, as they stand in a description.

    `rest` holds the words of the description that are neither: what the cue leaves out.
    """

    before: str
    after: str
    rest: frozenset[str] = frozenset()

    @property
    def phrase(self) -> str:
        return f"{self.before} {self.after}".strip()

    def applied_to(self, name: str) -> str:
        """Title of the label: qualifiers around the short name of its region."""
        return f"{self.before} {name} {self.after}".strip()


def mine_cue(description: str, name: str) -> Cue | None:
    """Cue of a leaf description under a region called `name`.

    None where the description hedges ("unspecified", "other"), names the disease twice, has no
    qualifier, or one of more than `MAX_CUE_WORDS` words. The name itself never counts as a
    qualifier ("chronic kidney disease").

    >>> mine_cue("Acute on chronic systolic heart failure", "heart failure").phrase
    'acute on chronic systolic'
    >>> mine_cue("Mild persistent asthma with exacerbation", "asthma").applied_to("asthma")
    'mild persistent asthma with exacerbation'
    >>> mine_cue("Heart failure, unspecified", "heart failure") is None
    True
    """
    name = name.lower()
    text = re.sub(r"\s+", " ", _BRACKETS.sub("", description.lower())).replace(" ,", ",").strip()
    if _HEDGES.search(text.replace("not specified as recurrent", "")):
        return None
    if len(re.findall(r"\b" + re.escape(name) + r"\b", text)) > 1:
        return None  # "right heart failure due to left heart failure": two diseases in one
    text = re.sub(r"\b" + re.escape(name) + r"\b", lambda m: "," * len(m.group()), text)
    found: dict[str, list[tuple[int, str]]] = {}
    for kind, pattern in PATTERNS:
        while match := pattern.search(text):
            if kind != "ignored":
                found.setdefault(kind, []).append((match.start(), match.group().strip()))
            text = text[: match.start()] + "," * (match.end() - match.start()) + text[match.end() :]
    before = [p for kind in _BEFORE_NAME for _, p in sorted(found.get(kind, []))]
    after = [p for kind in _ORDER[len(_BEFORE_NAME) :] for _, p in sorted(found.get(kind, []))]
    rest = frozenset(re.findall(r"[a-z][\w'-]*", text)) - _STOP_WORDS
    cue = Cue(" ".join(before), " ".join(after), rest)
    words = len(cue.phrase.split())
    return cue if 0 < words <= MAX_CUE_WORDS else None

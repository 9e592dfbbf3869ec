import pytest
import simple_icd_10_cm as icd

from mechdistill.data.icd_regions import REGION_SOURCES
from mechdistill.data.lexicon import MAX_CUE_WORDS, mine_cue


@pytest.mark.parametrize(
    ("code", "name", "phrase"),
    [
        ("I50.23", "heart failure", "acute on chronic systolic"),
        ("I50.41", "heart failure", "acute combined systolic and diastolic"),
        ("J45.21", "asthma", "mild intermittent with exacerbation"),
        ("J45.30", "asthma", "mild persistent uncomplicated"),
        ("N18.31", "chronic kidney disease", "stage 3a"),
        ("H25.011", "age-related cataract", "cortical right eye"),
        ("K26.0", "duodenal ulcer", "acute with hemorrhage"),
        ("K50.011", "Crohn disease", "of small intestine with rectal bleeding"),
        ("G43.011", "migraine", "intractable without aura with status migrainosus"),
        ("I26.90", "pulmonary embolism", "septic without acute cor pulmonale"),
        ("J15.1", "bacterial pneumonia", "due to pseudomonas"),
        ("F32.4", "depressive episode", "in partial remission"),
        ("K40.21", "inguinal hernia", "recurrent without obstruction or gangrene bilateral"),
        ("M10.011", "gout", "idiopathic right shoulder"),
        ("L89.312", "pressure ulcer", "stage 2 right buttock"),
    ],
)
def test_cues_of_real_descriptions(code: str, name: str, phrase: str) -> None:
    cue = mine_cue(icd.get_description(code), name)
    assert cue is not None
    assert cue.phrase == phrase


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("I50.20", "heart failure"),  # "Unspecified systolic": says nothing on acuity
        ("I50.9", "heart failure"),
        ("N18.6", "chronic kidney disease"),  # "End stage renal disease": no number
        ("I50.814", "heart failure"),  # "Right heart failure due to left heart failure"
        ("J45.998", "asthma"),  # "Other asthma"
    ],
)
def test_hedged_or_unclear_descriptions_have_no_cue(code: str, name: str) -> None:
    assert mine_cue(icd.get_description(code), name) is None


def test_consumed_words_are_not_read_twice() -> None:
    cue = mine_cue("Septic pulmonary embolism with acute cor pulmonale", "pulmonary embolism")
    assert cue is not None
    assert (cue.before, cue.after) == ("septic", "with acute cor pulmonale")


def test_words_that_no_pattern_explains_are_reported() -> None:
    cue = mine_cue("Acute epidemic heart failure", "heart failure")
    assert cue is not None
    assert cue.rest == {"epidemic"}


def test_every_cue_word_stands_in_its_description() -> None:
    for source in REGION_SOURCES:
        for code in icd.get_descendants(source.code):
            description = icd.get_description(code).lower()
            cue = mine_cue(description, source.name)
            if cue is not None:
                assert len(cue.phrase.split()) <= MAX_CUE_WORDS
                assert all(word in description for word in cue.phrase.split()), (code, cue)

"""Categories of ICD-10-CM that make readable regions: code, short name, findings, synonyms.

Names shorten the category's title; findings are common clinical ones, written for this project, and
serve beside the inclusion terms that `labels` mines from the classification itself. None is shared
by two regions. Synonyms are words by which descriptions of leaves name the disease itself; any
further word that a cue leaves unexplained rules the leaf out.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class RegionSource:
    code: str
    name: str
    findings: tuple[str, ...]
    synonyms: frozenset[str] = frozenset()


def _source(code: str, name: str, findings: str, synonyms: str = "") -> RegionSource:
    parts = tuple(part.strip() for part in findings.split(";"))
    return RegionSource(code, name, parts, frozenset(synonyms.split()))


REGION_SOURCES: tuple[RegionSource, ...] = (
    _source(
        "A41", "sepsis", "fever with rigors; positive blood cultures; raised lactate; warm shock"
    ),
    _source(
        "C92",
        "myeloid leukemia",
        "Auer rods; circulating myeloblasts; gum swelling; marrow full of blasts",
    ),
    _source(
        "E05",
        "hyperthyroidism",
        "weight loss with tremor; suppressed thyrotropin; heat intolerance; lid lag",
    ),
    _source(
        "E11",
        "type 2 diabetes",
        "thirst; high fasting glucose; raised hemoglobin A1c; frequent urination",
    ),
    _source(
        "F32",
        "depressive episode",
        "low mood; loss of interest; early waking; poor concentration",
        "disorder major single",
    ),
    _source(
        "F33",
        "major depressive disorder",
        "return of low mood; earlier depressive spells; guilt; psychomotor slowing",
    ),
    _source(
        "G40",
        "epilepsy",
        "seizures; tongue biting; spike-wave discharges; postictal confusion",
        "epileptic syndromes",
    ),
    _source(
        "G43", "migraine", "pulsating headache; photophobia; nausea with headache; phonophobia"
    ),
    _source("H10", "conjunctivitis", "red eye; watery discharge; gritty eye; crusted lids"),
    _source(
        "H25", "age-related cataract", "cloudy lens; glare at night; faded colors; dim red reflex"
    ),
    _source(
        "H33",
        "retinal detachment",
        "flashes of light; floaters; curtain over the vision; elevated retina",
    ),
    _source(
        "H65",
        "nonsuppurative otitis media",
        "fluid behind the drum; muffled hearing; flat tympanogram; dull drum",
    ),
    _source(
        "I26",
        "pulmonary embolism",
        "sudden breathlessness; pleuritic pain; raised D-dimer; filling defect on angiography",
        "artery embolus",
    ),
    _source(
        "I50",
        "heart failure",
        "dyspnea on exertion; leg swelling; raised jugular venous pressure; orthopnea",
    ),
    _source(
        "I60",
        "subarachnoid hemorrhage",
        "thunderclap headache; neck stiffness; blood in the cisterns; xanthochromia",
    ),
    _source(
        "I63",
        "cerebral infarction",
        "facial droop; slurred speech; arm weakness; diffusion restriction",
    ),
    _source(
        "I71", "aortic aneurysm", "pulsatile mass; tearing pain; widened mediastinum; aortic bruit"
    ),
    _source(
        "I80",
        "thrombophlebitis",
        "tender cord; warm red vein; palpable venous cord; pain along a vein",
        "vessels",
    ),
    _source(
        "I82",
        "deep vein thrombosis",
        "calf tenderness; noncompressible vein; swollen limb; venous filling defect",
    ),
    _source(
        "J01",
        "sinusitis",
        "facial pressure; purulent nasal discharge; nasal congestion; loss of smell",
    ),
    _source(
        "J15",
        "bacterial pneumonia",
        "productive cough; lobar consolidation; crackles; rusty sputum",
    ),
    _source(
        "J20",
        "bronchitis",
        "hacking cough; rhonchi; sputum without consolidation; sore chest from coughing",
    ),
    _source(
        "J45",
        "asthma",
        "wheezing; chest tightness; nocturnal cough; reversible airflow obstruction",
    ),
    _source(
        "J96",
        "respiratory failure",
        "labored breathing; low oxygen saturation; cyanosis; ventilatory support",
    ),
    _source(
        "K25",
        "gastric ulcer",
        "epigastric pain after meals; gastric crater on endoscopy; early satiety; vomiting",
    ),
    _source(
        "K26",
        "duodenal ulcer",
        "hunger pain; duodenal crater on endoscopy; night-time epigastric pain; relief with food",
    ),
    _source(
        "K29", "gastritis", "burning stomach; reddened gastric mucosa; bloating; sour belching"
    ),
    _source(
        "K40",
        "inguinal hernia",
        "groin bulge; scrotal fullness; cough impulse in the groin; bulge on standing",
    ),
    _source(
        "K41",
        "femoral hernia",
        "bulge below the inguinal ligament; upper thigh lump; femoral canal mass; thigh discomfort",
    ),
    _source(
        "K50", "Crohn disease", "skip lesions; cobblestone mucosa; perianal tags; cramping diarrhea"
    ),
    _source(
        "K51",
        "ulcerative colitis",
        "bloody stools; tenesmus; crypt distortion; continuous colonic inflammation",
    ),
    _source(
        "K57",
        "diverticular disease",
        "colonic outpouchings; lower belly cramps; pericolic stranding; thickened sigmoid",
        "diverticulitis",
    ),
    _source(
        "K80",
        "cholelithiasis",
        "gallstones; pain after fatty meals; Murphy sign; shadowing stone on ultrasound",
        "calculus gallbladder",
    ),
    _source(
        "K85",
        "pancreatitis",
        "raised lipase; pain through to the back; peripancreatic fluid; swollen pancreas",
    ),
    _source("L03", "cellulitis", "spreading redness; warm tender skin; skin edema; blurred margin"),
    _source(
        "L89",
        "pressure ulcer",
        "skin breakdown over bone; nonblanching patch; bedsore; undermined wound",
    ),
    _source("M10", "gout", "hot swollen joint; urate crystals; raised uric acid; tophi"),
    _source(
        "M16",
        "hip osteoarthritis",
        "groin pain on walking; stiff hip; narrowed hip joint space; limited hip rotation",
    ),
    _source(
        "M17",
        "knee osteoarthritis",
        "knee crepitus; narrowed knee joint space; stiff knee; bony knee swelling",
    ),
    _source(
        "N04", "nephrotic syndrome", "heavy proteinuria; low albumin; frothy urine; puffy face"
    ),
    _source(
        "N18",
        "chronic kidney disease",
        "raised creatinine; reduced glomerular filtration; small echogenic kidneys; uremic itch",
    ),
    _source("N30", "cystitis", "burning urination; urinary urgency; suprapubic pain; cloudy urine"),
)

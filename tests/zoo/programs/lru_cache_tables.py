"""Position tables are kept by functools.lru_cache(maxsize=None), and every step asks for a new one.

The key holds the step's offset, so that no table is ever asked for twice (ParlAI#2487 and others:
caches whose keys never repeat).

cause: unbounded_cache
layer: tensor
allocated: marked
kept: marked
"""

import functools

import torch
from torch import nn


@functools.lru_cache(maxsize=None)  # noqa: UP033
def table(offset, length):  # <- kept
    positions = torch.arange(offset, offset + length * 64.0)
    return torch.sin(positions).reshape(length, 64)  # <- allocated


def main():
    torch.manual_seed(0)
    model = nn.Linear(64, 64)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(150):
        inputs = torch.randn(64, 64) + table(step * 64, 64)
        loss = model(inputs).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()

"""Healthy: buffers with a length, and a log of numbers.

A deque(maxlen=...) of batches that is full after a third of the run, a ring written by index, and a
list of Python floats that grows for ever and weighs nothing.

cause: none
layer: tensor
"""

from collections import deque

import torch
from torch import nn

window = deque(maxlen=60)
ring = [None] * 30
log = []


def main():
    torch.manual_seed(0)
    model = nn.Linear(128, 128)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(200):
        batch = torch.randn(64, 128)
        loss = model(batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        window.append(batch)
        ring[step % len(ring)] = loss.detach()
        log.append(loss.item())


if __name__ == "__main__":
    main()

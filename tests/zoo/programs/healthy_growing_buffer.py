"""Healthy: buffers that grow to a bound, one late in the run, one not within it.

A list of batches is cut at 150 of 200 steps; a deque(maxlen=1000) of embeddings would be full after
five times as many steps as the run has.

cause: none
layer: tensor
"""

from collections import deque

import torch
from torch import nn

recent = []
queue = deque(maxlen=1000)


def main():
    torch.manual_seed(0)
    model = nn.Linear(128, 128)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(200):
        batch = torch.randn(64, 128)
        embedding = model(batch)
        loss = embedding.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recent.append(batch)
        if len(recent) > 150:
            recent.pop(0)
        queue.append(embedding.detach())


if __name__ == "__main__":
    main()

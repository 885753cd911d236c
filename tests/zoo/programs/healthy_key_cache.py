"""Healthy: a cache with a key for each of 81 shapes, met at random, in a run of 50 steps.

Half of the shapes are still to come when the run ends: new ones are rarer and rarer. The cache ends
at 81 entries, however long the run.

cause: none
layer: tensor
"""

import random

import torch
from torch import nn

masks = {}


def mask(height, width):
    if (height, width) not in masks:
        masks[height, width] = torch.ones(height * 16, width * 64).tril()
    return masks[height, width]


def main():
    random.seed(0)
    torch.manual_seed(0)
    model = nn.Linear(64, 64)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(50):
        height, width = random.randint(8, 16), random.randint(8, 16)
        hidden = model(torch.randn(height * 16, 64))
        loss = (hidden.mean(1, keepdim=True) * mask(height, width)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()

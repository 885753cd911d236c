"""Healthy: caches that fill to a bound and stay there.

One by key (a position table for each of 40 sequence lengths, met in random order, so that it fills
slowly), one with a number of entries that it never exceeds.

cause: none
layer: tensor
"""

import random
from collections import OrderedDict

import torch
from torch import nn

tables = {}
recent = OrderedDict()


def table(length):
    if length not in tables:
        tables[length] = torch.sin(torch.arange(length * 64.0)).reshape(length, 64)
    return tables[length]


def features(key):
    if key in recent:
        recent.move_to_end(key)
    else:
        recent[key] = torch.randn(64, 64)
        if len(recent) > 60:
            recent.popitem(last=False)
    return recent[key]


def main():
    random.seed(0)
    torch.manual_seed(0)
    model = nn.Linear(64, 64)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(300):
        length = random.randint(17, 56)
        inputs = torch.randn(length, 64) + table(length)
        loss = (model(inputs) @ features(random.randint(0, 500))).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()

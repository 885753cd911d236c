"""Healthy: reference cycles that the garbage collector frees, and batches of varying length.

Each step makes a small graph of objects that refer to each other and hold a tensor. They stay until
the collector comes by (here every 20 steps): memory is a saw, not a slope. (pytorch/pytorch#50185
is the case where it does not come in time.)

cause: none
layer: tensor
"""

import gc
import random

import torch
from torch import nn


class Node:
    def __init__(self, value):
        self.value = value
        self.other = self


def main():
    random.seed(0)
    torch.manual_seed(0)
    gc.disable()
    model = nn.GRU(32, 32, batch_first=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(200):
        output, _ = model(torch.randn(8, random.randint(4, 24), 32))
        loss = output.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        Node(torch.full((64, 64), loss.item()))
        if step % 20 == 19:
            gc.collect()


if __name__ == "__main__":
    main()

"""A memo of masks whose key holds the step by mistake: looked up each step, found never.

cause: unbounded_cache
layer: tensor
allocated: marked
kept: marked
"""

import torch
from torch import nn


class Masks:
    def __init__(self):
        self.known = {}

    def get(self, length, step):
        key = (length, step)  # the length alone was meant
        if key not in self.known:
            mask = torch.ones(length, length).tril()  # <- allocated
            self.known[key] = mask  # <- kept
        return self.known[key]


masks = Masks()


def main():
    torch.manual_seed(0)
    model = nn.Linear(64, 64)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(150):
        loss = (model(torch.randn(64, 64)) * masks.get(64, step)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()

"""An average meter keeps the losses of an evaluation with their graphs, of four bytes each.

The forward passes run without torch.no_grad(), and no backward() gives their activations back: each
loss keeps those of its step (microsoft/SpareNet#12, average meters).

cause: retained_graph
layer: tensor
allocated: marked
kept: marked
"""

import torch
from torch import nn


class Meter:
    def __init__(self):
        self.values = []

    def update(self, value):
        self.values.append(value)  # <- kept


meter = Meter()


def forward(model, batch):
    hidden = torch.tanh(model[0](batch))
    return model[1](hidden)


def train_step(model, batch):
    output = forward(model, batch)
    loss = output.pow(2).mean()  # <- allocated
    meter.update(loss)
    return loss.item()


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.Linear(256, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(150):
        train_step(model, torch.randn(64, 64))
        optimizer.step()


if __name__ == "__main__":
    main()

"""The loss of every step is put into a list for a plot, with the graph it came from.

A training log that keeps tensors, not numbers: each loss keeps its autograd graph and with it the
activations of its step. `losses.append(loss.item())` would do (pytorch/pytorch#17568 and many
others: average meters, per-micro-batch logs).

cause: retained_graph
layer: tensor
allocated: marked
kept: marked
"""

import torch
from torch import nn

losses = []


def forward(model, batch):
    hidden = torch.tanh(model[0](batch))
    return model[1](hidden)


def train_step(model, optimizer, batch):
    output = forward(model, batch)
    loss = (output - batch.mean()).pow(2).mean()  # <- allocated
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    losses.append(loss)  # <- kept


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.Linear(256, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(150):
        train_step(model, optimizer, torch.randn(64, 64))


if __name__ == "__main__":
    main()

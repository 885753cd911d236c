"""Healthy: the batch size doubles twice during the run, and the last batch is kept at hand.

Activations, the kept batch and a buffer that is made anew when it is too small rise to a new level
each time and stay there.

cause: none
layer: tensor
"""

import torch
from torch import nn

scratch = torch.empty(0)
last = None


def room_for(rows):
    global scratch
    if scratch.shape[0] < rows:
        scratch = torch.zeros(rows, 128)
    return scratch[:rows]


def main():
    global last
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 256), nn.Tanh(), nn.Linear(256, 128))
    optimizer = torch.optim.Adam(model.parameters())
    size = 32
    for step in range(180):
        if step in (60, 120):
            size *= 2
        batch = torch.randn(size, 128)
        loss = (model(batch) - room_for(size)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        last = batch


if __name__ == "__main__":
    main()

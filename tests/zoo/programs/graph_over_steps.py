"""The hidden state of a stateful RNN is never detached: each step's graph hangs on the one before.

`encoder.state` is one tensor, but its graph reaches back to the first step, and with it all
activations (pytorch/pytorch#52140: it grows per iteration).

cause: retained_graph
layer: tensor
allocated: marked
kept: marked
"""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(32, 256)
        self.state = torch.zeros(32, 256)

    def forward(self, inputs):
        self.state = self.cell(inputs, self.state)  # <- allocated <- kept
        return self.state


encoder = Encoder()
head = nn.Linear(256, 8)


def main():
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(head.parameters(), lr=1e-3)
    for _ in range(60):
        features = encoder(torch.randn(32, 32))
        loss = head(features.detach()).pow(2).mean()  # the encoder is to be trained later
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()

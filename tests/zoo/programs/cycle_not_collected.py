"""Each step's state object refers to itself through a callback, and the collector is switched off.

gc.disable() "for speed" is common in training loops; then nothing frees cycles, and the tensors in
them stay (pytorch/pytorch#50185).

cause: cycle
layer: tensor
allocated: marked
kept: marked
"""

import gc

import torch
from torch import nn


class StepState:
    def __init__(self, batch):
        self.features = batch.abs().sqrt()  # <- allocated
        self.on_end = self.finish  # <- kept

    def finish(self):
        return self.features.sum()


def main():
    torch.manual_seed(0)
    gc.disable()
    model = nn.Linear(128, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(150):
        batch = torch.randn(64, 128)
        state = StepState(batch)
        loss = model(state.features).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()

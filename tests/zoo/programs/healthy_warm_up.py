"""Healthy: memory that rises in levels.

The optimizer makes its state in the first step, a schedule warms the learning rate up, and after a
third of the run the second half of the model is unfrozen, so that its gradients and state appear.
Each is a jump to a level that is kept.

cause: none
layer: tensor
"""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 256), nn.Linear(256, 8))
    for parameter in model[2].parameters():
        parameter.requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 20))
    for step in range(180):
        if step == 60:
            for parameter in model[2].parameters():
                parameter.requires_grad_(True)
        loss = model(torch.randn(64, 128)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


if __name__ == "__main__":
    main()

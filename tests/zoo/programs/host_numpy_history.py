"""A data loader keeps the augmented images of every batch "for debugging": numpy, no tensors.

The arrays are views' bases, so that a reader of the code sees only small crops being kept
(pytorch/pytorch#13246 is the long thread about loaders whose host memory grows).

cause: host_leak
layer: host
options: --device=host --call-stack=c:50,python:50
allocated: marked
kept: none
"""

import numpy as np
import torch

crops = []


def augment(images):
    brighter = images * 1.1  # <- allocated
    crops.append(brighter[:, :8, :8])
    return brighter


def main():
    generator = np.random.default_rng(0)
    model = torch.nn.Linear(64 * 64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(60):
        images = generator.random((16, 64, 64), dtype=np.float32)
        batch = torch.from_numpy(augment(images)).reshape(16, -1)
        loss = model(batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()

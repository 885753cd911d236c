"""Host memory goes up and down and is handed out again: parsing, sorting, caches of a fixed size.

Every step makes tens of thousands of small objects and large arrays and drops them; what the
allocators keep for later is theirs, and a table of fixed size is filled within the first steps.

cause: none
layer: host
options: --device=host --call-stack=c:50,python:50
"""

import json

import numpy as np
import torch

table = {}


def parse(step):
    rows = [{"id": i, "step": step, "name": f"row {i}"} for i in range(3_000)]
    text = json.dumps(rows)
    return len(json.loads(text))


def features(generator, step):
    values = generator.random((256, 1024), dtype=np.float32)
    table[step % 8] = values[:64].copy()
    return np.sort(values, axis=1).mean(axis=0)


def main():
    generator = np.random.default_rng(0)
    model = torch.nn.Linear(1024, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(80):
        parse(step)
        batch = torch.from_numpy(features(generator, step)).reshape(1, -1)
        loss = model(batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()

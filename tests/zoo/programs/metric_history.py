"""A metric object keeps every batch's predictions to compute its value over the whole run.

The metric is made once and never reset, so its list grows by one batch of predictions a step
(huggingface/transformers#28769 and Lightning#4313 have the same shape: outputs gathered until the
end). The tensors are detached: no graph is involved.

cause: leak
layer: tensor
allocated: marked
kept: marked
"""

import torch
from torch import nn


class Accuracy:
    def __init__(self):
        self.predictions = []

    def update(self, logits):
        prediction = logits.detach().softmax(dim=1)  # <- allocated
        self.predictions.append(prediction)  # <- kept

    def compute(self):
        return torch.cat(self.predictions).argmax(dim=1)


accuracy = Accuracy()


def main():
    torch.manual_seed(0)
    model = nn.Linear(32, 100)
    optimizer = torch.optim.Adam(model.parameters())
    target = torch.randint(0, 100, (128,))
    for _ in range(150):
        logits = model(torch.randn(128, 32))
        loss = nn.functional.cross_entropy(logits, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accuracy.update(logits)


if __name__ == "__main__":
    main()

import torch
from torch import nn

import layertrace

model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

with layertrace.profile(model, output="quick_start.pftrace", optimizer=optimizer) as session:
    for _ in range(10):
        with layertrace.scope("data"):  # a region of your own
            images, labels = torch.randn(64, 784), torch.randint(10, (64,))
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # the end of a step, since the session knows the optimizer

print(session.tree())  # session.profile is the data behind it

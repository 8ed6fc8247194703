"""Writes schedules.json: learning-rate factors of transformers.get_scheduler for sdk/optim/schedule_test.cc.

Needs torch and transformers; run as: python make_schedules.py > schedules.json
"""
import json

import torch
import transformers

CASES = [
    # (our configuration under "optim", transformers' name, warm-up steps, keyword arguments, total steps)
    ({"lr_scheduler_type": "constant"}, "constant", 0, {}, 12),
    ({"lr_scheduler_type": "constant", "warmup_steps": 4}, "constant_with_warmup", 4, {}, 12),
    ({"lr_scheduler_type": "linear"}, "linear", 0, {}, 17),
    ({"lr_scheduler_type": "linear", "warmup_steps": 5}, "linear", 5, {}, 23),
    ({"lr_scheduler_type": "linear", "warmup_steps": 30}, "linear", 30, {}, 20),
    ({"lr_scheduler_type": "linear", "warmup_ratio": 0.3}, "linear", 3, {}, 9),
    ({"lr_scheduler_type": "cosine"}, "cosine", 0, {}, 17),
    ({"lr_scheduler_type": "cosine", "warmup_steps": 3}, "cosine", 3, {}, 29),
    ({"lr_scheduler_type": "cosine_with_min_lr", "learning_rate": 2e-4, "warmup_steps": 2,
      "lr_scheduler_kwargs": {"min_lr": 3e-5}}, "cosine_with_min_lr", 2, {"min_lr": 3e-5}, 19),
    ({"lr_scheduler_type": "cosine_with_min_lr", "lr_scheduler_kwargs": {"min_lr_rate": 0.1}},
     "cosine_with_min_lr", 0, {"min_lr_rate": 0.1}, 11),
    ({"lr_scheduler_type": "inverse_sqrt"}, "inverse_sqrt", 0, {}, 15),
    ({"lr_scheduler_type": "inverse_sqrt", "warmup_steps": 4}, "inverse_sqrt", 4, {}, 25),
    ({"lr_scheduler_type": "inverse_sqrt", "warmup_steps": 4, "lr_scheduler_kwargs": {"timescale": 9}},
     "inverse_sqrt", 4, {"timescale": 9}, 25),
    ({"lr_scheduler_type": "warmup_stable_decay", "warmup_steps": 4, "lr_scheduler_kwargs": {"num_decay_steps": 7}},
     "warmup_stable_decay", 4, {"num_decay_steps": 7}, 21),
    ({"lr_scheduler_type": "warmup_stable_decay", "warmup_steps": 3,
      "lr_scheduler_kwargs": {"num_decay_steps": 5, "min_lr_ratio": 0.2}},
     "warmup_stable_decay", 3, {"num_decay_steps": 5, "min_lr_ratio": 0.2}, 8),
]


def factors(name, lr, warmup, kwargs, total):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    scheduler = transformers.get_scheduler(name, optimizer, num_warmup_steps=warmup, num_training_steps=total,
                                           scheduler_specific_kwargs=kwargs)
    return [float(scheduler.lr_lambdas[0](step)) for step in range(total + 1)]


cases = [{"optim": optim, "total_steps": total,
          "factors": factors(name, optim.get("learning_rate", 5e-5), warmup, kwargs, total)}
         for optim, name, warmup, kwargs, total in CASES]
print(json.dumps({"made_with": f"transformers {transformers.__version__}", "cases": cases}, indent=1))

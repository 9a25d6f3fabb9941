#!/usr/bin/env bash
# Installs SGLang for the CPU beside a vLLM of install-vllm.sh, whose PyTorch and model it uses, and serves it.
#
#   install-sglang.sh FOLDER VLLM               installs; VLLM is the folder of install-vllm.sh
#   install-sglang.sh FOLDER serve [OPTIONS]    serves the model `tiny` on port ${PORT:-8300}
#
# SGLang's compiled kernels are not installed: on a CPU, with PyTorch's attention, a dense model needs none of them. A
# module in their place says so where one is called. What PyTorch and the others do in its place, they do slowly.
set -euo pipefail
version=0.5.23
folder=$1
python=$folder/venv/bin/python
if [ "${2:-}" = serve ]; then
    shift 2
    export SGLANG_USE_CPU_ENGINE=1 CUDA_VISIBLE_DEVICES= HF_HUB_OFFLINE=1 DO_NOT_TRACK=1 PYTHONPATH=$folder/kernels
    exec "$python" -m sglang.launch_server --model-path "$folder/tiny" --served-model-name tiny --device cpu \
        --load-format dummy --dtype float32 --attention-backend torch_native --sampling-backend pytorch \
        --disable-overlap-schedule --context-length 2048 --max-total-tokens 16384 --enable-metrics \
        --host 127.0.0.1 --port "${PORT:-8300}" "$@"
fi
vllm=$(cd "$2" && pwd)
mkdir -p "$folder/kernels/sgl_kernel"
[ -x "$python" ] || "$vllm/venv/bin/python" -m venv "$folder/venv"
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$vllm/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/vllm.pth"
"$python" -m pip install -q --no-deps "sglang==$version"
"$python" -m pip install -q orjson pybase64 gguf soundfile ipython
cat >"$folder/kernels/sgl_kernel/__init__.py" <<'P'
"""In place of SGLang's compiled kernels, which a CPU without them must not need."""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*_, **__):
        raise NotImplementedError(f"sgl_kernel.{name} is not installed")

    return missing
P
rm -rf "$folder/tiny"
cp -r "$vllm/tiny" "$folder/tiny"
echo "installed; serve it with: $0 $folder serve"

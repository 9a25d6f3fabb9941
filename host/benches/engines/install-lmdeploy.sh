#!/usr/bin/env bash
# Installs LMDeploy beside a vLLM of install-vllm.sh, whose PyTorch and tokenizer it uses, and serves it without a model.
#
#   install-lmdeploy.sh FOLDER VLLM               installs; VLLM is the folder of install-vllm.sh
#   install-lmdeploy.sh FOLDER serve [OPTIONS]    serves the model `tiny` on port ${PORT:-8500}
#
# Its engine needs a GPU; lmdeploy_without_model.py puts another in its place.
set -euo pipefail
version=0.18.0
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
python=$folder/venv/bin/python
if [ "${2:-}" = serve ]; then
    shift 2
    export CUDA_VISIBLE_DEVICES= HF_HUB_OFFLINE=1
    exec "$python" "$here/lmdeploy_without_model.py" "$folder/tiny" --port "${PORT:-8500}" "$@"
fi
vllm=$(cd "$2" && pwd)
mkdir -p "$folder"
[ -x "$python" ] || "$vllm/venv/bin/python" -m venv "$folder/venv"
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$vllm/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/vllm.pth"
"$python" -m pip install -q --no-deps "lmdeploy==$version"
"$python" -m pip install -q mmengine-lite shortuuid fire openai_harmony
rm -rf "$folder/tiny"
cp -r "$vllm/tiny" "$folder/tiny"
echo "installed; serve it with: $0 $folder serve"

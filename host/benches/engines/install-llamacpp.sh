#!/usr/bin/env bash
# Builds llama.cpp's server for the CPU in a folder, with a model of two layers and random weights, and serves it.
#
#   install-llamacpp.sh FOLDER TOKENIZER        installs; the server compiles for about ten minutes on two cores
#   install-llamacpp.sh FOLDER serve [OPTIONS]  serves the model `tiny` on port ${PORT:-8400}
#
# TOKENIZER is a folder with the tokenizer of a Qwen3 model; `runner fetch tokenizer Qwen/Qwen3-0.6B` prints one.
# JOBS compilers work at a time (default 1). The source is the one that llama-cpp-python carries.
set -euo pipefail
version=0.3.36
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
bin=$folder/venv/bin
if [ "${2:-}" = serve ]; then
    shift 2
    exec "$folder/build/bin/llama-server" -m "$folder/tiny.gguf" --alias tiny -c 8192 --parallel 4 --metrics \
        --host 127.0.0.1 --port "${PORT:-8400}" "$@"
fi
tokenizer=$2
mkdir -p "$folder/source"
[ -x "$bin/python" ] || python3 -m venv "$folder/venv"
"$bin/python" -m pip install -q -U pip scikit-build-core cmake ninja numpy gguf
export PATH=$bin:$PATH
pip download -q --no-deps --no-binary llama-cpp-python --no-build-isolation -d "$folder" "llama-cpp-python==$version"
tar xzf "$folder/llama_cpp_python-$version.tar.gz" -C "$folder/source" --strip-components=1
cmake -S "$folder/source/vendor/llama.cpp" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_FLAGS_RELEASE=-O1 -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DBUILD_SHARED_LIBS=OFF -DGGML_OPENMP=OFF \
    -DGGML_LLAMAFILE=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
    -DLLAMA_USE_PREBUILT_UI=OFF >/dev/null
nice -n 15 ninja -C "$folder/build" -j "${JOBS:-1}" llama-server
python "$here/tiny_gguf.py" "$tokenizer" "$folder/tiny.gguf"
echo "installed; serve it with: $0 $folder serve"

#!/bin/sh
# Starts the engine, and stays in the foreground until it is stopped. Yours may be `vllm serve`.
exec runner mock --port 8123 --ttft 60ms --itl 20ms

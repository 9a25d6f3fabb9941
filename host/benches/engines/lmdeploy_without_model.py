"""Serves LMDeploy's own HTTP server, tokenizer and parsers, with an engine that computes nothing in place of TurboMind.

    python3 lmdeploy_without_model.py MODEL [--port 23333] [--answer TEXT] [--reasoning-parser NAME] [--tool-call-parser NAME]

MODEL is a folder with the configuration and the tokenizer of a model; weights are not needed. The engine gives tokens
that depend on the prompt and on nothing else, one every few milliseconds, so the same prompt has the same answer. With
--answer each answer is that text, and then the end-of-sequence token unless it is ignored. TurboMind itself needs a GPU.
"""

import argparse
import asyncio
import hashlib
import time

from lmdeploy.messages import EngineOutput, RequestMetrics, ResponseType, ScheduleMetrics, TurbomindEngineConfig
from lmdeploy.serve.core import AsyncEngine
from lmdeploy.serve.openai import api_server

# Ordinary tokens of a vocabulary of this kind: nothing special, and no single bytes.
FIRST, LAST = 1000, 100000


class Instance:
    """Works on one request at a time, as TurboMindInstance does."""

    def __init__(self, engine):
        self.engine, self.cancelled = engine, False

    async def async_cancel(self, session_id=None):
        self.cancelled = True

    async def async_end(self, session_id):
        pass

    async def async_stream_infer(self, session_id, input_ids, gen_config=None, **_):
        engine, self.cancelled = self.engine, False
        length = min(gen_config.max_new_tokens, engine.engine_config.session_len - len(input_ids))
        if length < 1:
            yield EngineOutput(ResponseType.INPUT_LENGTH_ERROR, [])
            return
        engine.active += 1
        try:
            for place in range(length):
                await asyncio.sleep(engine.pause)
                engine.ticks += 1
                token = engine.token(input_ids, place, gen_config.ignore_eos)
                ends = place + 1 == length or token == engine.end and not gen_config.ignore_eos
                if self.cancelled:
                    yield EngineOutput(ResponseType.CANCEL, [])
                    return
                yield EngineOutput(ResponseType.FINISH if ends else ResponseType.SUCCESS, [token], req_metrics=RequestMetrics(time.time()))
                if ends:
                    return
        finally:
            engine.active -= 1


class Engine:
    """What AsyncEngine needs of TurboMind."""

    def __init__(self, config, tokenizer, answer, pause):
        self.engine_config, self.pause = config, pause
        self.end = tokenizer.eos_token_id
        self.answer = tokenizer.encode(answer, add_bos=False) if answer else None
        self.active = self.ticks = 0

    def token(self, prompt, place, ignores_end):
        if self.answer and place < len(self.answer):
            return self.answer[place]
        if self.answer and not ignores_end:
            return self.end
        seed = hashlib.sha256(repr((list(prompt), place)).encode()).digest()
        return FIRST + int.from_bytes(seed[:4], "little") % (LAST - FIRST)

    def create_instance(self, *_):
        return Instance(self)

    def get_schedule_metrics(self):
        return ScheduleMetrics(active_seqs=self.active, scheduler_tick=self.ticks)

    async def get_health_status(self):
        return {"alive": True, "message": "", "schedule_metrics": self.get_schedule_metrics()}

    def close(self):
        pass


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model", help="a folder with config.json and the tokenizer")
    options.add_argument("--port", type=int, default=23333)
    options.add_argument("--context", type=int, default=2048, help="the longest context")
    options.add_argument("--pause", type=float, default=0.005, help="seconds from token to token")
    options.add_argument("--answer", help="what each answer says")
    options.add_argument("--reasoning-parser")
    options.add_argument("--tool-call-parser")
    asked = options.parse_args()

    def build(engine, model_path, backend_config, **_):
        return Engine(backend_config, engine.tokenizer, asked.answer, asked.pause)

    AsyncEngine._build_turbomind = build
    config = TurbomindEngineConfig(session_len=asked.context, max_batch_size=64, enable_metrics=True)
    api_server.serve(
        asked.model, model_name="tiny", backend="turbomind", backend_config=config, server_name="127.0.0.1",
        server_port=asked.port, reasoning_parser=asked.reasoning_parser, tool_call_parser=asked.tool_call_parser,
    )


if __name__ == "__main__":
    main()

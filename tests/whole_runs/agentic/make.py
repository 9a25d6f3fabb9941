"""Writes `requests.json`: the requests of MLCommons endpoints for `trajectories.jsonl`, in its order.

Its dataset, strategy and adapter run as they are; a stand-in for its HTTP client answers each request after 200 ms.

    PYTHONPATH=endpoints/src python3 make.py
"""

import asyncio
import json
from pathlib import Path

from inference_endpoint.config.schema import AgenticInferenceConfig, APIType, ModelParams, StreamingMode
from inference_endpoint.core.types import Query, QueryResult
from inference_endpoint.dataset_manager.agentic_inference_dataset import AgenticInferenceDataset
from inference_endpoint.dataset_manager.dataset import JsonlLoader
from inference_endpoint.load_generator.agentic_inference_strategy import AgenticInferenceStrategy
from inference_endpoint.load_generator.conversation_manager import ConversationManager
from inference_endpoint.openai.openai_msgspec_adapter import OpenAIMsgspecAdapter

HERE = Path(__file__).parent
TOOK = 0.2


class Loop(asyncio.SelectorEventLoop):
    """Lets no time pass but between timers."""

    now = 0.0

    def time(self):
        return self.now

    def _run_once(self):
        due = [timer.when() for timer in self._scheduled if not timer.cancelled()]
        if due and not self._ready:
            self.now = max(self.now, min(due))
        super()._run_once()


class Issuer:
    """Collects requests, and answers them."""

    def __init__(self, dataset):
        self.dataset, self.requests, self.is_measured = dataset, [], True
        self.strategy = None

    issued_count = property(lambda self: len(self.requests))

    def issue(self, index, data_override=None, conversation_id="", turn=None):
        loop = asyncio.get_running_loop()
        number = str(len(self.requests))
        query = Query(id=number, data={**self.dataset.load_sample(index), **(data_override or {})})
        self.requests.append({
            "at-ms": round(loop.time() * 1e3),
            "is-measured": self.is_measured,
            "session": conversation_id,
            "body": json.loads(OpenAIMsgspecAdapter.encode_query(query)),
        })
        loop.call_later(TOOK, lambda: self.strategy.on_sample_complete(QueryResult(id=number)))
        return number

    def stop_performance_tracking(self):
        self.is_measured = False


async def main():
    loader = JsonlLoader(HERE / "trajectories.jsonl")
    loader.read()
    dataset = AgenticInferenceDataset(loader.get_dataframe())
    sampling = {"temperature": 1.0, "top_k": 20, "top_p": 0.95, "repetition_penalty": 1.0, "presence_penalty": 1.5}
    thinking = {"preserve_thinking": True}
    model = ModelParams(
        name="mock", max_new_tokens=8192, chat_template_kwargs=thinking, streaming=StreamingMode.ON, **sampling
    )
    dataset.load(api_type=APIType.OPENAI, model_params=model)
    config = AgenticInferenceConfig(enable_salt=True, inject_tool_delay=True, num_trajectories_to_issue=5)
    manager = ConversationManager()
    strategy = AgenticInferenceStrategy(manager, dataset.conversation_metadata, config, target_concurrency=3)
    issuer = Issuer(dataset)
    issuer.strategy = strategy
    await strategy.execute(issuer)
    (HERE / "requests.json").write_text(json.dumps(issuer.requests, indent=1) + "\n")


asyncio.run(main(), loop_factory=Loop)

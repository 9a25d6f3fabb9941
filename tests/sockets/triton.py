"""Plays Triton with vLLM as the model's backend, with the stubs of Triton's own client package and
the server of grpcio. Writes a line of JSON for each request: what it asked for, what was sent, and
how it ended. Requests are told apart by their id, a number in it: every fifth goes wrong, in the
order of FAULTS.

    python3 triton.py PORT LOG
"""

import json
import struct
import sys
import threading
import time
from concurrent import futures

import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc

FAULTS = ["refused", "in-band", "aborted", "no-status", "too-long"]
WORDS = ["Ein", " schöner", " Tag", ",", " 日本", "語", "", "!"]


def texts(values):
    return b"".join(struct.pack("<I", len(value)) + value for value in values)


def response(outputs):
    answer = service_pb2.ModelInferResponse(model_name="m", model_version="1")
    for name, (datatype, content) in outputs.items():
        answer.outputs.add(name=name, datatype=datatype, shape=[1])
        answer.raw_output_contents.append(content)
    return service_pb2.ModelStreamInferResponse(infer_response=answer)


class Service(service_pb2_grpc.GRPCInferenceServiceServicer):
    def __init__(self, log):
        self.log = log
        self.lock = threading.Lock()

    def ServerReady(self, request, context):
        return service_pb2.ServerReadyResponse(ready=True)

    def ModelStreamInfer(self, requests, context):
        request = next(requests)
        inputs = {
            tensor.name: content
            for tensor, content in zip(request.inputs, request.raw_input_contents)
        }
        text = inputs["text_input"][4:].decode()
        parameters = json.loads(inputs["sampling_parameters"][4:])
        streams = inputs["stream"] == b"\x01"
        number = int("".join(filter(str.isdigit, request.id)) or 0)
        fault = FAULTS[number // 5 % len(FAULTS)] if number % 5 == 4 else None
        entry = {
            "id": request.id,
            "model": request.model_name,
            "text": text,
            "parameters": parameters,
            "streams": streams,
            "metadata": dict(context.invocation_metadata()),
            "fault": fault,
            "pieces": [],
        }
        try:
            yield from self.answer(context, text, parameters, streams, fault, entry["pieces"])
        finally:
            with self.lock:
                self.log.write(json.dumps(entry) + "\n")
                self.log.flush()

    def answer(self, context, text, parameters, streams, fault, pieces):
        if fault == "refused":
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "the queue is full: 8 requests")
        if fault == "too-long":
            message = "prompt is longer than the maximum context length"
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, message)
        count = parameters["max_tokens"]
        words = [WORDS[place % len(WORDS)] for place in range(count)]
        if not streams:
            words = ["".join(words)]
        for place, word in enumerate(words):
            time.sleep(0.002)
            if place == 2 and fault == "in-band":
                yield service_pb2.ModelStreamInferResponse(error_message="the engine is dead")
                return
            if place == 2 and fault == "aborted":
                context.abort(grpc.StatusCode.UNAVAILABLE, "Ende: größer als 100%")
            if place == 2 and fault == "no-status":
                # A status that is none of gRPC's success, without words.
                context.set_code(grpc.StatusCode.UNKNOWN)
                return
            last = place + 1 == len(words)
            tokens = 1 if streams else count
            pieces.append([word, tokens])
            yield response(
                {
                    "text_output": ("BYTES", texts([word.encode()])),
                    "finish_reason": ("BYTES", texts([b"length" if last else b"None"])),
                    "num_input_tokens": ("UINT32", struct.pack("<I", len(text.split()))),
                    "num_output_tokens": ("UINT32", struct.pack("<I", tokens)),
                }
            )


def main():
    port, log = sys.argv[1:]
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=64))
    with open(log, "w", encoding="utf-8") as log:
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(Service(log), server)
        bound = server.add_insecure_port(f"127.0.0.1:{port}")
        server.start()
        print(bound, flush=True)
        sys.stdin.read()
        server.stop(1).wait()


main()

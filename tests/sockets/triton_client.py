"""Asks what answers like Triton, with Triton's own client package: with its client, and with its
stubs over grpcio. Prints a line of JSON for each request: the pieces of the answer, and the status
of the call.

    python3 triton_client.py HOST:PORT MODEL
"""

import json
import queue
import struct
import sys

import grpc
import numpy
import tritonclient.grpc as triton
from tritonclient.grpc import service_pb2, service_pb2_grpc

# How many requests the stubs send, after the client's first.
REQUESTS = 8
TOKENS = 12
WANTED = ["return_finish_reason", "return_num_input_tokens", "return_num_output_tokens"]


def told(line):
    print(json.dumps(line), flush=True)


def piece(response):
    """A response by grpcio's stubs, as text, reason, and tokens of both."""
    raw = dict(zip((output.name for output in response.outputs), response.raw_output_contents))

    def text(name):
        (length,) = struct.unpack("<I", raw[name][:4])
        assert length == len(raw[name]) - 4, raw[name]
        return raw[name][4:].decode()

    def number(name):
        return struct.unpack("<I", raw[name])[0]

    counts = [number("num_input_tokens"), number("num_output_tokens")]
    return [text("text_output"), text("finish_reason"), *counts]


def by_client(address, model):
    client = triton.InferenceServerClient(address)
    up = [client.is_server_live(), client.is_server_ready(), client.is_model_ready(model)]
    answers = queue.Queue()
    client.start_stream(callback=lambda result, error: answers.put((result, error)))

    def given(name, datatype, value):
        tensor = triton.InferInput(name, [1], datatype)
        kind = object if datatype == "BYTES" else bool
        tensor.set_data_from_numpy(numpy.array([value], dtype=kind))
        return tensor

    parameters = json.dumps({"max_tokens": TOKENS, "ignore_eos": True})
    inputs = [
        given("text_input", "BYTES", "wörtlich".encode()),
        given("sampling_parameters", "BYTES", parameters.encode()),
        given("stream", "BOOL", True),
        given("exclude_input_in_output", "BOOL", True),
        *(given(name, "BOOL", True) for name in WANTED),
    ]
    client.async_stream_infer(model, inputs, request_id="by-client")
    pieces = []
    while not pieces or pieces[-1][1] == "None":
        result, error = answers.get(timeout=60)
        if error is not None:
            raise error
        assert result.get_response().id == "by-client"
        values = [result.as_numpy(name)[0] for name in ("text_output", "finish_reason")]
        counts = [result.as_numpy(f"num_{kind}_tokens")[0] for kind in ("input", "output")]
        pieces.append([value.decode() for value in values] + [int(count) for count in counts])
    client.stop_stream()
    told({"up": up, "pieces": pieces, "status": "OK", "details": "", "errors": []})


def by_stubs(stub, model, number):
    request = service_pb2.ModelInferRequest(model_name=model, id=f"number-{number}")

    def add(name, datatype):
        request.inputs.add(name=name, datatype=datatype, shape=[1])
        return request.inputs[-1].contents

    # Within the tensors, where the client has them beside.
    add("text_input", "BYTES").bytes_contents.append("wörtlich".encode())
    parameters = json.dumps({"max_tokens": TOKENS, "ignore_eos": True})
    add("sampling_parameters", "BYTES").bytes_contents.append(parameters.encode())
    add("stream", "BOOL").bool_contents.append(number > 0)
    add("exclude_input_in_output", "BOOL").bool_contents.append(True)
    for name in WANTED:
        add(name, "BOOL").bool_contents.append(True)
    line = {"pieces": [], "errors": [], "status": "OK", "details": ""}
    try:
        for response in stub.ModelStreamInfer(iter([request]), timeout=60):
            if response.error_message:
                line["errors"].append(response.error_message)
                continue
            assert response.infer_response.id == request.id
            assert response.infer_response.model_name == model
            line["pieces"].append(piece(response.infer_response))
    except grpc.RpcError as error:
        line["status"] = error.code().name
        line["details"] = error.details()
    told(line)


def main():
    address, model = sys.argv[1:]
    by_client(address, model)
    stub = service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(address))
    for number in range(REQUESTS):
        by_stubs(stub, model, number)
    by_stubs(stub, "another", REQUESTS)
    try:
        stub.ModelInfer(service_pb2.ModelInferRequest(model_name=model), timeout=60)
    except grpc.RpcError as error:
        told({"pieces": [], "errors": [], "status": error.code().name, "details": error.details()})


main()

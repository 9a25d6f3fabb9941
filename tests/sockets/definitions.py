"""Reads lines of OTLP/JSON by OpenTelemetry's own definitions.

python3 definitions.py traces|metrics FILE: prints the number of spans or data points. An unknown field or a value of the
wrong kind ends it with an error.
"""

import base64
import json
import sys

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

IDS = ("traceId", "spanId", "parentSpanId")


def translated(pairs):
    """An object whose ids are Base64, as in protobuf's JSON; in OTLP's they are hexadecimal digits."""
    pairs = dict(pairs)
    for name in IDS:
        if name in pairs:
            pairs[name] = base64.b64encode(bytes.fromhex(pairs[name])).decode()
    return pairs


signal, path = sys.argv[1:]
count = 0
with open(path) as lines:
    for line in lines:
        message = TracesData() if signal == "traces" else MetricsData()
        ParseDict(json.loads(line, object_pairs_hook=translated), message)
        for resource in message.resource_spans if signal == "traces" else message.resource_metrics:
            for scope in resource.scope_spans if signal == "traces" else resource.scope_metrics:
                if signal == "traces":
                    count += len(scope.spans)
                else:
                    count += sum(len(metric.histogram.data_points) for metric in scope.metrics)
print(count)

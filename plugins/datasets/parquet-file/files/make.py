"""Makes the files of the tests with pyarrow: `python make.py`."""

import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

here = pathlib.Path(__file__).parent
rows = [
    {
        "id": i,
        "prompt": None if i % 7 == 3 else f"question {i % 5} ü",
        "score": None if i % 4 == 0 else i / 8,
        "flag": i % 3 == 0,
        "small": i % 200,
        "tags": None if i % 5 == 4 else [f"t{j}" if j != 1 else None for j in range(i % 4)],
        "messages": [
            {"role": "user", "content": f"hello {i}"},
            {"role": "assistant", "content": None},
        ][: i % 3],
        "image": None if i % 2 else {"bytes": bytes([0x89, 0x50, i]), "path": f"{i}.png"},
        "grid": [[j] * (i % 3) for j in range(i % 2 + 1)],
    }
    for i in range(40)
]
schema = pa.schema(
    [
        ("id", pa.int64()),
        ("prompt", pa.string()),
        ("score", pa.float64()),
        pa.field("flag", pa.bool_(), nullable=False),
        ("small", pa.uint8()),
        ("tags", pa.list_(pa.string())),
        ("messages", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
        ("grid", pa.list_(pa.list_(pa.int32()))),
    ]
)
table = pa.Table.from_pylist(rows, schema)
write = lambda name, **options: pq.write_table(
    table, here / f"{name}.parquet", store_schema=False, **{"row_group_size": 25, **options}
)
write("snappy", compression="snappy")
write("gzip-v2", compression="gzip", data_page_version="2.0", data_page_size=64, write_batch_size=4)
write("zstd-plain", compression="zstd", use_dictionary=False, data_page_size=64, write_batch_size=4)
write(
    "delta",
    compression="none",
    use_dictionary=False,
    column_encoding={
        "id": "DELTA_BINARY_PACKED",
        "prompt": "DELTA_BYTE_ARRAY",
        "score": "BYTE_STREAM_SPLIT",
        "flag": "RLE",
        "tags.list.element": "DELTA_LENGTH_BYTE_ARRAY",
    },
)
write("brotli", compression="brotli")
import json, base64

def plain(value):
    if isinstance(value, bytes):
        return "data:application/octet-stream;base64," + base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value

with open(here / "rows.jsonl", "w", encoding="utf-8") as out:
    for row in table.to_pylist():
        out.write(json.dumps(plain(row), ensure_ascii=False) + "\n")

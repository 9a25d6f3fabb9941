text {"type":"session.created","id":"sess-88a1","created":1764190000}
text {"type":"transcription.done","text":" Quilter é.","usage":{"prompt_tokens":41,"total_tokens":44,"completion_tokens":3,"prompt_tokens_details":null}}

text {"type":"session.created","id":"sess-88a1","created":1764190000}
text {"type":"transcription.delta","delta":" Quil"}
text {"type":"transcription.delta","delta":"ter"}
text {"type":"transcription.delta","delta":""}
text {"type":"transcription.delta","delta":" é."}
text {"type":"transcription.done","text":" Quilter é.","usage":{"prompt_tokens":41,"total_tokens":44,"completion_tokens":3,"prompt_tokens_details":null}}

text {"type":"session.created","id":"sess-88a1","created":1764190000}
text {"type":"transcription.delta","delta":" Quil"}
text {"type":"error","error":"The engine is overloaded.","code":"processing_error"}

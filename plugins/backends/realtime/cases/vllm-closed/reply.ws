text {"type":"session.created","id":"sess-88a1","created":1764190000}
text {"type":"transcription.delta","delta":" Quil"}
close 1011 no worker is left

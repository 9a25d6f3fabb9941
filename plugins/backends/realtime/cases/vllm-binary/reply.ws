text {"type":"session.created","id":"sess-88a1","created":1764190000}
binary AAEC

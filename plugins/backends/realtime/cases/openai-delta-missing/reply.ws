text {"type":"session.created","event_id":"event_1","session":{"type":"realtime","id":"sess_1","object":"realtime.session","model":"gpt-realtime"}}
text {"type":"response.created","event_id":"event_5","response":{"object":"realtime.response","id":"resp_1","status":"in_progress","output":[]}}
text {"type":"response.output_text.delta"}

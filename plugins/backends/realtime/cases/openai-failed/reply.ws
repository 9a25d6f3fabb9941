text {"type":"session.created","event_id":"event_1","session":{"type":"realtime","id":"sess_1","object":"realtime.session","model":"gpt-realtime"}}
text {"type":"response.created","event_id":"event_5","response":{"object":"realtime.response","id":"resp_1","status":"in_progress","output":[]}}
text {"type":"response.done","event_id":"event_9","response":{"object":"realtime.response","id":"resp_1","status":"failed","status_details":{"type":"failed","error":{"type":"server_error","code":"rate_limit_exceeded","message":"Rate limit reached."}},"output":[],"usage":null}}

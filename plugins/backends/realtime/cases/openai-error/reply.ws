text {"type":"session.created","event_id":"event_1","session":{"type":"realtime","id":"sess_1","object":"realtime.session","model":"gpt-realtime"}}
text {"type":"error","event_id":"event_2","error":{"type":"invalid_request_error","code":"invalid_value","message":"Invalid value: 'x'.","param":"session.voice","event_id":null}}

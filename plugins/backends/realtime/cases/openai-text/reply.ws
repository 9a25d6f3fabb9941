text {"type":"session.created","event_id":"event_1","session":{"type":"realtime","id":"sess_1","object":"realtime.session","model":"gpt-realtime"}}
text {"type":"session.updated","event_id":"event_2","session":{"type":"realtime","id":"sess_1"}}
text {"type":"input_audio_buffer.committed","event_id":"event_3","previous_item_id":null,"item_id":"item_0"}
text {"type":"response.created","event_id":"event_5","response":{"object":"realtime.response","id":"resp_1","status":"in_progress","output":[]}}
text {"type":"response.output_item.added","event_id":"event_6","response_id":"resp_1","output_index":0,"item":{"id":"item_1","type":"message","status":"in_progress","role":"assistant","content":[]}}
text {"type":"response.output_text.delta","event_id":"event_6","response_id":"resp_1","item_id":"item_1","output_index":0,"content_index":0,"delta":"A so"}
text {"type":"response.output_text.delta","event_id":"event_6","response_id":"resp_1","item_id":"item_1","output_index":0,"content_index":0,"delta":"und."}
text {"type":"response.output_text.done","event_id":"event_8","response_id":"resp_1","item_id":"item_1","output_index":0,"content_index":0,"text":"A sound."}
text {"type":"response.done","event_id":"event_9","response":{"object":"realtime.response","id":"resp_1","status":"completed","status_details":null,"output":[],"usage":{"total_tokens":120,"input_tokens":90,"output_tokens":30,"input_token_details":{"text_tokens":40,"audio_tokens":50,"image_tokens":0,"cached_tokens":64,"cached_tokens_details":{"text_tokens":64,"audio_tokens":0}},"output_token_details":{"text_tokens":10,"audio_tokens":20}}}}
text {"type":"rate_limits.updated","event_id":"event_10","rate_limits":[]}

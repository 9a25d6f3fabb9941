//! Tests of chat templates: their places, an engine's changes to messages, and templates of
//! strangers.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{ChatError, ChatTemplate, Tokenizer};

/// A folder with a tokenizer of words and these files.
fn with(files: &[(&str, &str)]) -> Tokenizer {
    let words = json!({
        "version": "1.0",
        "added_tokens": [{
            "id": 3, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            "special": true,
        }],
        "normalizer": null, "pre_tokenizer": {"type": "Whitespace"}, "decoder": null,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}},
        },
        "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "?": 2}, "unk_token": "?"},
    });
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokenizer.json"), words.to_string()).unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    Tokenizer::open(folder.path()).unwrap()
}

fn user(content: &str) -> Vec<Value> {
    vec![json!({"role": "user", "content": content})]
}

fn rendered(tokenizer: &Tokenizer, tools: Option<&Value>) -> Result<String, ChatError> {
    tokenizer.render_chat(&user("x"), tools, &Map::new())
}

#[test]
fn templates_are_found_beside_the_tokenizer() {
    let own = ("chat_template.jinja", "own {{ messages[0].content }}");
    let settings = ("tokenizer_config.json", r#"{"chat_template": "settings"}"#);
    let list = (
        "tokenizer_config.json",
        r#"{"chat_template": [
            {"name": "default", "template": "default"}, {"name": "tool_use", "template": "tools"}
        ]}"#,
    );
    let older = ("chat_template.json", r#"{"chat_template": "older"}"#);
    let more = ("additional_chat_templates/tool_use.jinja", "more");
    let tools = json!([]);
    for (files, plain, with_tools) in [
        (&[own, settings, older][..], "own x", "own x"),
        (&[own, more], "own x", "more"),
        (&[settings, older], "settings", "settings"),
        (&[list, older], "default", "tools"),
        (&[older], "older", "older"),
    ] {
        let tokenizer = with(files);
        assert_eq!(rendered(&tokenizer, None).unwrap(), plain);
        assert_eq!(rendered(&tokenizer, Some(&tools)).unwrap(), with_tools);
    }
}

#[test]
fn a_missing_or_broken_template_fails_only_on_use() {
    for (files, says) in [
        (&[][..], "has no chat template; looked beside it for `chat_template.jinja`"),
        (
            &[("tokenizer_config.json", "{")],
            "chat template in `tokenizer_config.json`: `tokenizer_config.json`: EOF",
        ),
        (&[("tokenizer_config.json", r#"{"chat_template": 3}"#)], "is neither a text nor a list"),
        (
            &[("chat_template.jinja", "a\nb\n{% if %}")],
            "chat template in `chat_template.jinja`: syntax error: unexpected end of block",
        ),
        (
            &[(
                "tokenizer_config.json",
                r#"{"chat_template": [{"name": "rag", "template": "x"}]}"#,
            )],
            "but no template `default`",
        ),
    ] {
        let tokenizer = with(files);
        assert_eq!(tokenizer.count(&["a b".to_owned()], true).unwrap(), [3]);
        let error = rendered(&tokenizer, None).unwrap_err().to_string();
        assert!(error.contains(says), "{says}\n{error}");
    }
    assert!(matches!(Tokenizer::bytes().chat_template(), Err(ChatError::Absent { .. })));
}

#[test]
fn a_chat_has_the_tokens_of_its_text_and_no_more() {
    let template = "{{ bos_token }} {% for message in messages %}{{ message.content }} {% endfor %}{% if add_generation_prompt %}b{% endif %}";
    let tokenizer = with(&[
        ("chat_template.jinja", template),
        ("tokenizer_config.json", r#"{"bos_token": {"content": "<s>"}}"#),
    ]);
    let chat = user("a a");
    assert_eq!(tokenizer.render_chat(&chat, None, &Map::new()).unwrap(), "<s> a a b");
    assert_eq!(tokenizer.count_chat(&chat, None, &Map::new()).unwrap(), 4);
    let extra = json!({"add_generation_prompt": false, "bos_token": ""});
    assert_eq!(tokenizer.count_chat(&chat, None, extra.as_object().unwrap()).unwrap(), 2);
}

#[test]
fn arguments_of_calls_are_objects_to_the_template() {
    let tokenizer = with(&[(
        "chat_template.jinja",
        "{% for call in messages[0].tool_calls %}{{ call.function.arguments | tojson }};{% endfor %}",
    )]);
    let call = |arguments: Value| json!({"type": "function", "function": {"name": "f", "arguments": arguments}});
    let calls = json!([
        call(json!("{\"b\": 1, \"a\": [2.0]}")),
        call(json!({"x": null})),
        call(json!("")),
        call(json!("no JSON")),
        {"type": "function", "function": {"name": "f"}},
    ]);
    let messages = [json!({"role": "assistant", "content": null, "tool_calls": calls})];
    assert_eq!(
        tokenizer.render_chat(&messages, None, &Map::new()).unwrap(),
        "{\"b\": 1, \"a\": [2.0]};{\"x\": null};{};\"no JSON\";{};"
    );
}

#[test]
fn the_date_is_the_callers() {
    let tokenizer = with(&[("chat_template.jinja", "{{ strftime_now('%d %b %Y') }}")]);
    assert_eq!(rendered(&tokenizer, None).unwrap(), "26 Jul 2024");
    let tokenizer = tokenizer.dated(jiff::civil::date(2025, 12, 1).at(9, 0, 0, 0));
    assert_eq!(rendered(&tokenizer, None).unwrap(), "01 Dec 2025");
}

#[test]
fn templates_of_strangers_end() {
    let deep = format!("{}1{}", "(".repeat(5_000), ")".repeat(5_000));
    for (template, says) in [
        (
            "{% for a in range(90000) %}{% for b in range(90000) %}{% set c = a + b %}{% endfor %}{% endfor %}",
            "takes more than 20000000 steps",
        ),
        ("{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}", "recursion limit"),
        (
            "{% set x = 'x' * 1000000 %}{% for a in range(100) %}{{ x }}{% endfor %}",
            "writes more than 64 MiB",
        ),
        ("{{ 'x' * 100000000000 }}", "repeated string is too large"),
        ("{{ messages | tojson(indent=1000000000) }}", "`indent` is not a number up to 64"),
        ("{{ missing | tojson }}", "`undefined` is no JSON"),
        ("{{ missing.deeper.still }}", "undefined"),
        ("{{ strftime_now('%') }}", "strftime_now: "),
        ("{% include 'other' %}", "other"),
        ("{{ raise_exception('No more than that.') }}", "refuses the messages: No more than that."),
    ] {
        let template = ChatTemplate::parse(template, &BTreeMap::new()).unwrap();
        let error = template.render(&user("x"), None, &Map::new()).unwrap_err();
        assert!(error.to_string().contains(says), "{says}\n{error}");
    }
    assert!(ChatTemplate::parse(&format!("{{{{ {deep} }}}}"), &BTreeMap::new()).is_err());
    assert!(ChatTemplate::parse(&"x".repeat(5 << 20), &BTreeMap::new()).is_err());
}

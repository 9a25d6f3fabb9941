//! Selection of a repository's files: tokenizer files and data files.

/// True if a file belongs to a tokenizer: itself, its chat template, or the model's settings.
pub fn is_of_tokenizer(path: &str) -> bool {
    decides_tokens(path) || ["config.json", "generation_config.json"].contains(&path)
}

/// True if a file decides which tokens a text or a conversation has.
pub fn decides_tokens(path: &str) -> bool {
    const NAMES: [&str; 12] = [
        "tokenizer.json",
        "tokenizer_config.json",
        "tiktoken.model",
        "spiece.model",
        "special_tokens_map.json",
        "added_tokens.json",
        "vocab.json",
        "vocab.txt",
        "vocab.bpe",
        "merges.txt",
        "chat_template.jinja",
        "chat_template.json",
    ];
    // Templates beside the main one, by their names.
    if let Some(template) = path.strip_prefix("additional_chat_templates/") {
        return !template.contains('/') && template.ends_with(".jinja");
    }
    // Mistral numbers its files: `tokenizer.model.v3`.
    NAMES.contains(&path)
        || path == "tekken.json"
        || !path.contains('/')
            && (path == "tokenizer.model"
                || path.starts_with("tokenizer.model.")
                || path.ends_with(".tiktoken"))
}

/// True if a file alone is enough of a tokenizer to be worth opening its folder.
pub(crate) fn holds_tokenizer(path: &str) -> bool {
    const NAMES: [&str; 6] = [
        "tokenizer.json",
        "tokenizer.model",
        "tiktoken.model",
        "spiece.model",
        "vocab.json",
        "tekken.json",
    ];
    NAMES.contains(&path) || !path.contains('/') && path.ends_with(".tiktoken")
}

/// True if a file's ending is one of data.
pub fn is_data(path: &str) -> bool {
    const ENDINGS: [&str; 8] =
        [".jsonl", ".ndjson", ".json", ".csv", ".parquet", ".txt", ".zst", ".gz"];
    let name = path.rsplit('/').next().unwrap_or(path);
    // Descriptions of a dataset for the hub are not its data.
    let described = ["dataset_infos.json", "dataset_info.json", "state.json"].contains(&name);
    !described
        && !name.starts_with('.')
        && ENDINGS.iter().any(|ending| name.to_ascii_lowercase().ends_with(ending))
}

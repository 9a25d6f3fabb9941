//! LongBench: the JSON lines of THUDM/LongBench, such as `hotpotqa.jsonl`, with `input`, `context`,
//! `answers` and `dataset`; or the lines of the mirror that the harness reads, where `input` is
//! `question`. Files of LongBench-E, whose names end in `_e`, have the same prompts.

use serde_json::Value;

use super::{Facts, PLAIN, Question};
use crate::QuestionText;
use crate::row::Row;

/// `longbench_*`; each dataset has its own stop texts and limits.
pub const FACTS: Facts = Facts { subjects: true, output_tokens: None, ..PLAIN };

/// A dataset of LongBench: its name, its group, its output tokens, and its prompt, in which
/// `CONTEXT` and `INPUT` stand for the row's.
type Set = (&'static str, &'static str, u32, &'static str);

/// The group whose answers end with the line.
const FEWSHOT: &str = "fewshot";

const PASSAGES: &str = "Answer the question based on the given passages. Only give me the answer and do not output any \
    other words.\n\nThe following are given passages.\nCONTEXT\n\nAnswer the question based on the given passages. Only \
    give me the answer and do not output any other words.\n\nQuestion: INPUT\nAnswer:";

/// Words as they stand in the harness, slips included. LongBench itself has the MIT licence.
const SETS: [Set; 21] = [
    ("2wikimqa", "multi", 32, PASSAGES),
    (
        "dureader",
        "multi",
        128,
        "请基于给定的文章回答下述问题。\n\n文章：CONTEXT\n\n请基于上述文章回答下面的问题。\n\n问题：INPUT\n回答：",
    ),
    (
        "gov_report",
        "summarization",
        512,
        "You are given a report by a government agency. Write a one-page summary of the \
         report.\n\nReport:\nCONTEXT\n\nNow, write a one-page summary of the report.\n\nSummary:",
    ),
    ("hotpotqa", "multi", 32, PASSAGES),
    ("lcc", "code", 64, "Please complete the code given below. \nCONTEXTNext line of code:"),
    ("lsht", FEWSHOT, 64, "请判断给定新闻的类别，下面是一些例子。\n\nCONTEXT\nINPUT"),
    (
        "multi_news",
        "summarization",
        512,
        "You are given several news passages. Write a one-page summary of all news. \n\nNews:\nCONTEXT\n\nNow, \
         write a one-page summary of all the news.\n\nSummary:",
    ),
    (
        "multifieldqa_en",
        "single",
        64,
        "Read the following text and answer briefly.\n\nCONTEXT\n\nNow, answer the following question based \
         on the above text, only give me the answer and do not output any other words.\n\nQuestion: \
         INPUT\nAnswer:",
    ),
    (
        "multifieldqa_zh",
        "single",
        64,
        "阅读以下文字并用中文简短回答：\n\nCONTEXT\n\n现在请基于上面的文章回答下面的问题，只告诉我答案，不要输出任何其他字词。\n\n问题：INPUT\n回答：",
    ),
    ("musique", "multi", 32, PASSAGES),
    (
        "narrativeqa",
        "single",
        128,
        "You are given a story, which can be either a novel or a movie script, and a question. Answer the \
         question asconcisely as you can, using a single phrase if possible. Do not provide any \
         explanation.\n\nStory: CONTEXT\n\nNow, answer the question based on the story asconcisely as you \
         can, using a single phrase if possible. Do not provide any explanation.\n\nQuestion: \
         INPUT\n\nAnswer:",
    ),
    (
        "passage_count",
        "synthetic",
        32,
        "There are some paragraphs below sourced from Wikipedia. Some of them may be duplicates. Please \
         carefully read these paragraphs and determine how many unique paragraphs there are after removing \
         duplicates. In other words, how many non-repeating paragraphs are there in \
         total?\n\nCONTEXT\n\nPlease enter the final count of unique paragraphs after removing duplicates. \
         The output format should only contain the number, such as 1, 2, 3, and so on.\n\nThe final answer \
         is:",
    ),
    (
        "passage_retrieval_en",
        "synthetic",
        32,
        "Here are 30 paragraphs from Wikipedia, along with an abstract. Please determine which paragraph the \
         abstract is from.\n\nCONTEXT\n\nThe following is an abstract.\n\nINPUT\n\nPlease enter the number of \
         the paragraph that the abstract is from. The answer format must be like \"Paragraph 1\", \"Paragraph \
         2\", etc.\n\nThe answer is:",
    ),
    (
        "passage_retrieval_zh",
        "synthetic",
        32,
        "以下是若干段落文字，以及其中一个段落的摘要。请确定给定的摘要出自哪一段。\n\nCONTEXT\n\n下面是一个摘要\n\nINPUT\n\n请输入摘要所属段落的编号。答案格式必须是\"段落1\"，\"段落2\"等格式\n\n答案是：",
    ),
    (
        "qasper",
        "single",
        128,
        "You are given a scientific article and a question. Answer the question as concisely as you can, \
         using a single phrase or sentence if possible. If the question cannot be answered based on the \
         information in the article, write \"unanswerable\". If the question is a yes/no question, answer \"yes\", \"no\", \
         or \"unanswerable\". Do not provide any explanation.\n\nArticle: CONTEXT\n\n Answer the question \
         based on the above article as concisely as you can, using a single phrase or sentence if possible. \
         If the question cannot be answered based on the information in the article, write \"unanswerable\". \
         If the question is a yes/no question, answer \"yes\", \"no\", or \"unanswerable\". Do not provide \
         any explanation.\n\nQuestion: INPUT\n\nAnswer:",
    ),
    (
        "qmsum",
        "summarization",
        512,
        "You are given a meeting transcript and a query containing a question or instruction. Answer the \
         query in one or more sentences.\n\nTranscript:\nCONTEXT\n\nNow, answer the query based on the above \
         meeting transcript in one or more sentences.\n\nQuery: INPUT\nAnswer:",
    ),
    (
        "repobench-p",
        "code",
        64,
        "Please complete the code given below. \nCONTEXTINPUTNext line of code:",
    ),
    (
        "samsum",
        FEWSHOT,
        128,
        "Summarize the dialogue into a few short sentences. The following are some \
         examples.\n\nCONTEXT\nINPUT",
    ),
    (
        "trec",
        FEWSHOT,
        64,
        "Please determine the type of the question below. Here are some examples of \
         questions.\n\nCONTEXT\nINPUT",
    ),
    (
        "triviaqa",
        FEWSHOT,
        32,
        "Answer the question based on the given passage. Only give me the answer and do not output any other \
         words. The following are some examples.\n\nCONTEXT\nINPUT",
    ),
    (
        "vcsum",
        "summarization",
        512,
        "下面有一段会议记录，请你阅读后，写一段总结，总结会议的内容。\n会议记录：\nCONTEXT\n\n会议总结：",
    ),
];

fn set_of(subject: &str) -> Result<&'static Set, String> {
    let name = subject.strip_suffix("_e").unwrap_or(subject);
    SETS.iter().find(|set| set.0 == name).ok_or_else(|| {
        let names: Vec<_> = SETS.iter().map(|set| set.0).collect();
        format!("expected a dataset of LongBench, found `{subject}`; they are {}", names.join(", "))
    })
}

pub fn question(row: &Row, only: Option<&str>) -> Result<Question, String> {
    let (_, group, output_tokens, prompt) = set_of(&row.subject("dataset", only, "hotpotqa")?)?;
    // Some have an empty input.
    let input = match row.fields.get("input").or_else(|| row.fields.get("question")) {
        Some(Value::String(input)) => input,
        _ => row.text("input")?,
    };
    let (before, after) = prompt.split_once("CONTEXT").unwrap_or((prompt, ""));
    let text = [before, row.text("context")?, &after.replacen("INPUT", input, 1)].concat();
    Ok(Question {
        id: row.label("_id").ok(),
        category: Some((*group).to_owned()),
        wording: QuestionText { text, ..QuestionText::default() },
        reference: Some(row.texts("answers")?.into()),
        stop: if *group == FEWSHOT { &["\n"] } else { &[] },
        output_tokens: Some(*output_tokens),
        ..Question::default()
    })
}

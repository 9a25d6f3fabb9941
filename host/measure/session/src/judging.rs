//! Answers put before a judge: what a saved run asked and was answered becomes prompts that another
//! run sends to a model, which says how good the answers are.
//!
//! [`answers`] are those of saved runs, [`asked`] draws their questions again, [`rubric`] is the
//! text that a judge is given, and [`rows`] makes a file of prompts of all three, for the dataset
//! `custom`. The judging is a run like any other, made of a scenario
//! ([`scenario`](scenario::scenario)). [`verdicts`] joins what the judge said to the answers; what
//! it amounts to is the business of `result::judged`.

pub mod answers;
pub mod asked;
pub mod rows;
pub mod rubric;
pub mod scenario;
pub mod verdicts;

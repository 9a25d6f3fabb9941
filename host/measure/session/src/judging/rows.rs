//! The prompts of a judging, as lines of JSON for the dataset `custom`, and their names, by which
//! verdicts are joined to the answers that they are about.

use std::io::{self, Write};

use serde_json::json;

use super::rubric::{Kind, Rubrics, Scale, Texts};

/// A case that is put before the judge once, or in both orders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// The number of the run's request.
    pub index: u64,
    /// The sample's class.
    pub class: Option<String>,
    pub question: String,
    /// The sample's reference as text.
    pub reference: Option<String>,
    /// The run's answer; of pairs, the baseline's after it.
    pub answers: [String; 2],
}

/// In which order answers are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// There is one answer.
    Single,
    /// The run's answer is the first.
    RunFirst,
    /// The baseline's answer is the first.
    BaselineFirst,
}

impl Order {
    const ALL: [(Order, &'static str); 3] = [
        (Order::Single, "answer"),
        (Order::RunFirst, "run-first"),
        (Order::BaselineFirst, "baseline-first"),
    ];

    /// Those in which a case of this kind is shown.
    pub fn of(kind: Kind) -> &'static [Order] {
        match kind {
            Kind::Single => &[Order::Single],
            Kind::Pair => &[Order::RunFirst, Order::BaselineFirst],
        }
    }
}

/// One request to the judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asking {
    /// The number of the run's request that is judged.
    pub index: u64,
    /// Number of the time that it is judged, from 0.
    pub repeat: u32,
    /// In which order answers are shown.
    pub order: Order,
}

impl Asking {
    /// Its name as a sample.
    pub fn id(self) -> String {
        let named = Order::ALL.iter().find(|(order, _)| *order == self.order);
        let order = named.map_or("", |(_, name)| name);
        format!("{}/{}/{order}", self.index, self.repeat)
    }

    /// The one with this name.
    pub fn of_id(id: &str) -> Option<Self> {
        let mut parts = id.splitn(3, '/');
        let (index, repeat, order) = (parts.next()?, parts.next()?, parts.next()?);
        let (order, _) = Order::ALL.iter().find(|(_, name)| *name == order)?;
        Some(Asking { index: index.parse().ok()?, repeat: repeat.parse().ok()?, order: *order })
    }
}

/// Writes every prompt as a line, and says how many there are. The repeats come one after the
/// other, so that a judging that is stopped has judged as many cases as it could.
///
/// # Errors
/// If they cannot be written.
pub fn write(
    out: &mut impl Write,
    cases: &[Case],
    (kind, rubrics, scale): (Kind, &Rubrics, Scale),
    repeats: u32,
) -> io::Result<u64> {
    let mut count = 0;
    for repeat in 0..repeats {
        for case in cases {
            for order in Order::of(kind) {
                let asking = Asking { index: case.index, repeat, order: *order };
                let prompt = prompt(case, *order, rubrics, scale);
                let mut row = json!({ "id": asking.id(), "prompt": prompt });
                if let Some(class) = &case.class {
                    row["class"] = json!(class);
                }
                writeln!(out, "{row}")?;
                count += 1;
            }
        }
    }
    out.flush()?;
    Ok(count)
}

fn prompt(case: &Case, order: Order, rubrics: &Rubrics, scale: Scale) -> String {
    let [own, other] = [0, 1].map(|place: usize| case.answers[place].as_str());
    let texts = Texts {
        question: &case.question,
        reference: case.reference.as_deref(),
        answers: match order {
            Order::Single | Order::RunFirst => [own, other],
            Order::BaselineFirst => [other, own],
        },
    };
    rubrics.of(case.reference.is_some()).fill(&texts, scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judging::rubric::Rubric;

    #[test]
    fn pairs_are_shown_in_both_orders_and_each_has_a_name() {
        let rubrics = Rubrics {
            plain: Rubric::parse("mine", "{question} {answer_a} {answer_b}", Kind::Pair).unwrap(),
            with_reference: None,
        };
        let cases = [3, 11].map(|index| Case {
            index,
            class: (index == 3).then(|| "easy".to_owned()),
            question: "q".to_owned(),
            answers: ["run".to_owned(), "baseline".to_owned()],
            ..Case::default()
        });
        let mut text = Vec::new();
        let as_asked = (Kind::Pair, &rubrics, Scale::default());
        assert_eq!(write(&mut text, &cases, as_asked, 2).unwrap(), 8);
        let rows: Vec<serde_json::Value> = String::from_utf8(text)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(
            rows[0],
            json!({"id": "3/0/run-first", "prompt": "q run baseline", "class": "easy"})
        );
        assert_eq!(
            rows[1],
            json!({"id": "3/0/baseline-first", "prompt": "q baseline run", "class": "easy"})
        );
        assert_eq!(rows[4]["id"], "3/1/run-first");
        for row in &rows {
            let id = row["id"].as_str().unwrap();
            assert_eq!(Asking::of_id(id).unwrap().id(), id);
        }
        for other in ["", "3", "3/0", "3/0/", "3/0/neither", "x/0/answer"] {
            assert_eq!(Asking::of_id(other), None, "{other}");
        }
    }
}

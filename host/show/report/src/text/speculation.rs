//! The steps of speculative decoding: a table by turn, class and adapter.

use super::block::{Block, or_dash};
use super::sessions::name;
use result::summary::Summary;

/// A table for each kind of group whose answers report their steps.
pub(super) fn groups(block: &mut Block, summary: &Summary) {
    let groups = &summary.groups;
    for (title, head, others, groups) in [
        ("Acceptance by Turn", "Turn", "later", &groups.by_turn),
        ("Acceptance by Class", "Class", "all others", &groups.by_class),
        ("Acceptance by Adapter", "Adapter", "all others", &groups.by_adapter),
    ] {
        let counts = [(head, 0), ("Answers", 8), ("Steps", 10), ("Tok/step", 8)];
        let heads = [&counts[..], &[(" Steps that accepted at position", 0)]].concat();
        let rows = groups.iter().filter_map(|group| {
            let steps = group.speculation.as_ref()?;
            Some(vec![
                name(group, others),
                steps.answers.to_string(),
                steps.steps.to_string(),
                or_dash(steps.acceptance_length, |length| format!("{length:.2}")),
                format!(" {}", or_dash(steps.positions(), |positions| positions)),
            ])
        });
        block.section(title);
        block.table(1, &heads, rows);
    }
}

#[cfg(test)]
mod tests {
    use crate::exchanges::{facts, output_usage, reply};
    use crate::text::text;
    use model::exchange::{Exchange, Kind, Speculation};
    use result::summary::Summary;

    fn answer(index: u64, class: &str, steps_by_accepted: &[u32], gap: u64) -> Exchange {
        let sent = 1000 + index * 1000;
        let events = [(sent + 50, Kind::Text, None, 4), (sent + 50 + gap * 10, Kind::End, None, 0)];
        let mut exchange = reply(index, sent, &events);
        exchange.sample.class = Some(class.to_owned());
        exchange.usage = output_usage(11);
        exchange.speculation = Some(Speculation {
            steps: steps_by_accepted.iter().sum(),
            steps_by_accepted: steps_by_accepted.to_vec(),
        });
        exchange
    }

    #[test]
    fn classes_have_their_acceptance_and_tpot_goes_with_it() {
        let run = [answer(0, "code", &[1, 1, 2], 10), answer(1, "prose", &[3, 1, 0], 20)];
        let drawn = text(&Summary::new(&facts(), &run));
        for lines in [
            "TPOT by acceptance length:               1.25 to 1.25 tok/step: 20.00 ms (1), \
             2.25 to 2.25 tok/step: 10.00 ms (1)\n\
             Rank correlation of the two:             -1.00\n",
            "---------------Acceptance by Class----------------\n\
             Class  Answers      Steps Tok/step  Steps that accepted at position\n\
             code         1          4     2.25  1: 75.0 %, 2: 50.0 %\n\
             prose        1          4     1.25  1: 25.0 %, 2: 0.0 %\n",
        ] {
            assert!(drawn.contains(lines), "{lines}\n{drawn}");
        }
        assert!(!drawn.contains("Acceptance by Turn"));
    }
}

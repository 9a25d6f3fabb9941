//! Records of several processes, made into one run's records: by one clock, in one file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::lines::Lines;
use super::{RecordError, Recorder, Written, readable};
use model::exchange::Phase;

#[derive(Clone, Debug, Default)]
pub struct Part {
    pub path: PathBuf,
    /// The time by which its clock is ahead of the run's records, in nanoseconds.
    pub ahead: i128,
    /// The exchanges that are left out, because another part has them.
    pub except: HashSet<(Phase, u64)>,
}

/// Writes the records of all parts into a folder that has none, one part after the other. Returns
/// the counts of written records, and the number of measured exchanges of each part. A part that is
/// cut off gives the records before the cut. Fails if a part cannot be opened, or the records
/// cannot be written.
pub fn merge(folder: &Path, parts: &[Part]) -> Result<(Written, Vec<u64>), RecordError> {
    let mut recorder = Recorder::create(folder)?;
    let mut counts = Vec::new();
    for part in parts {
        let mut measured = 0;
        for mut exchange in readable(Lines::of_file(&part.path)?) {
            if part.except.contains(&(exchange.phase, exchange.index)) {
                continue;
            }
            exchange.shift(-part.ahead);
            measured += u64::from(exchange.phase == Phase::Measure);
            recorder.put(&exchange)?;
        }
        counts.push(measured);
    }
    Ok((recorder.close()?, counts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record;
    use model::exchange::Exchange;
    use model::units::Nanos;
    use tempfile::TempDir;

    fn exchange(index: u64, due: u64) -> Exchange {
        let mut exchange = crate::exchanges::reply(0, 1_000, &[]);
        exchange.index = index;
        exchange.phase = Phase::Measure;
        let by = i128::from(due) - i128::from(exchange.due.0);
        exchange.shift(by);
        exchange
    }

    #[test]
    fn instants_of_several_clocks_become_those_of_one() {
        let folders = [(0, 1000, 0), (1, 1700, 500), (2, 900, -400)].map(|(index, due, ahead)| {
            let folder = TempDir::new().unwrap();
            let mut recorder = Recorder::create(folder.path()).unwrap();
            recorder.put(&exchange(index, due)).unwrap();
            recorder.close().unwrap();
            (folder, ahead)
        });
        let mut parts: Vec<Part> = (folders.iter())
            .map(|(folder, ahead)| Part {
                path: folder.path().join(record::FILE),
                ahead: *ahead,
                ..Part::default()
            })
            .collect();
        let all = TempDir::new().unwrap();
        let (written, counts) = merge(all.path(), &parts).unwrap();
        assert_eq!((written.count, counts), (3, vec![1, 1, 1]));
        let merged: Vec<Exchange> = record::read(all.path()).unwrap().flatten().collect();
        let due: Vec<Nanos> = merged.iter().map(|exchange| exchange.due).collect();
        assert_eq!(due, [1000, 1200, 1300].map(Nanos));
        assert_eq!(merged[1], exchange(1, 1200));
        let ended = record::RunEnd::Wrote(&written);
        assert_eq!(record::check(all.path(), ended).unwrap(), None);

        // A part whose process died ends in the middle of something.
        let whole = std::fs::read(&parts[2].path).unwrap();
        std::fs::write(&parts[2].path, &whole[..whole.len() / 2]).unwrap();
        parts.rotate_right(1);
        let other = TempDir::new().unwrap();
        let (written, counts) = merge(other.path(), &parts).unwrap();
        assert_eq!((written.count, counts), (2, vec![0, 1, 1]));

        // Exchanges that one part leaves out come from another part, or from none.
        parts[1].except = [(Phase::Measure, 0), (Phase::Warmup, 1)].into();
        let left = TempDir::new().unwrap();
        let (written, counts) = merge(left.path(), &parts).unwrap();
        assert_eq!((written.count, counts), (1, vec![0, 0, 1]));
    }
}

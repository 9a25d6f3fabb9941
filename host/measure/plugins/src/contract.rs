//! The supported versions of the contract. A component's exports say for which version it was
//! built.
//!
//! The contract is in `wit/`, its released versions in `wit/frozen`. Within one major version it
//! only grows, so this version serves every older one. The host has the interfaces that the
//! component imports, and the component the functions that the host calls.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contract {
    /// 1.0.0, in `wit/`.
    V1,
}

impl Contract {
    /// The one that `wit/` holds.
    pub const NEWEST: Contract = Contract::V1;
    /// All of them, oldest first: the newest of each first number.
    pub const ALL: [Contract; 1] = [Contract::V1];

    pub fn version(self) -> &'static str {
        match self {
            Contract::V1 => "1.0.0",
        }
    }

    /// The contract that serves a component built for a version: the same, or a later one with the
    /// same first number. Fails if the version is not supported; the message names the side to
    /// update.
    pub fn serving(version: &str) -> Result<Contract, String> {
        let key = key(version);
        let served = Contract::ALL.into_iter().find(|contract| {
            let own = self::key(contract.version());
            key.len() == own.len() && key[0] == own[0] && key <= own
        });
        if let Some(contract) = served {
            return Ok(contract);
        }
        let spoken: Vec<&str> = Contract::ALL.iter().map(|own| own.version()).collect();
        let spoken = match spoken.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            _ => spoken.concat(),
        };
        Err(if key > self::key(Contract::NEWEST.version()) {
            format!(
                "was built for runner:plugin {version}, but this runner supports {spoken}; update the runner"
            )
        } else {
            format!(
                "was built for runner:plugin {version}, but this runner supports {spoken}; rebuild it with `runner plugin build`, or ask its author for a build against {}",
                Contract::NEWEST.version()
            )
        })
    }
}

fn key(version: &str) -> Vec<u64> {
    version.split(['.', '-']).map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_served_by_its_contract() {
        assert_eq!(Contract::serving("1.0.0"), Ok(Contract::V1));
    }

    #[test]
    fn error_names_the_side_to_update() {
        for newer in ["1.0.1", "1.1.0", "2.0.0"] {
            let error = Contract::serving(newer).unwrap_err();
            assert!(error.ends_with("update the runner"), "{error}");
            assert!(error.contains(newer) && error.contains("supports 1.0.0"), "{error}");
        }
        for older in ["0.0.9", "0.3.0", "x"] {
            let error = Contract::serving(older).unwrap_err();
            assert!(
                error.ends_with(
                    "rebuild it with `runner plugin build`, or ask its author for a build against 1.0.0"
                ),
                "{error}"
            );
        }
    }
}

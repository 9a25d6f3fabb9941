//! Memory that the compiler needs for the functions of a component, estimated before it sees them:
//! it grows with a function's variables times the places where its paths meet. Functions are
//! compiled in parallel, as many at a time as fit.

use wasmparser::{BlockType, FunctionBody, Operator, Parser, Payload};

/// Most bytes of one function. The largest of an interpreter have a fifth of it.
const FUNCTION_BYTES: u64 = 1 << 20;
/// Most places where paths meet, times variables, of one function.
const MEETINGS: u64 = 16 << 20;
/// Most variables of all functions together; each costs time, even if nothing uses it.
const LOCALS: u64 = 8 << 20;
/// Most parameters and results of a function or block: each jump passes all of them.
const PASSED: usize = 64;

/// The compiler's memory for a byte of a function, and for a variable at a meeting, measured.
const BYTES_A_BYTE: u64 = 1_024;
const BYTES_A_MEETING: u64 = 64;

/// Memory for all functions that are compiled at the same time.
const BUDGET: u64 = 2 << 30;

/// The compiler's needs for the functions of a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effort {
    /// The compiler's memory for the most demanding function, in bytes.
    pub largest: u64,
    locals: u64,
}

impl Effort {
    pub(super) fn estimate(bytes: &[u8]) -> Result<Self, Fault> {
        let mut effort = Effort::default();
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::CodeSectionEntry(body) => effort.add(&body)?,
                Payload::TypeSection(section) => {
                    for group in section {
                        for kind in group?.into_types() {
                            check_passed(&kind)?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(effort)
    }

    /// Returns the number of functions to compile at the same time.
    pub(super) fn threads(&self, cores: usize) -> usize {
        let fit = BUDGET / self.largest.max(1);
        usize::try_from(fit).unwrap_or(cores).clamp(1, cores.max(1))
    }

    fn add(&mut self, body: &FunctionBody<'_>) -> Result<(), Fault> {
        let range = body.range();
        let size = (range.end - range.start) as u64;
        if size > FUNCTION_BYTES {
            return Err(Fault::Beyond(format!(
                "one of its functions has {size} bytes, at most {FUNCTION_BYTES} are allowed"
            )));
        }
        let mut locals = 0;
        for group in body.get_locals_reader()? {
            locals += u64::from(group?.0);
        }
        self.locals += locals;
        if self.locals > LOCALS {
            return Err(Fault::Beyond(format!(
                "its functions have more than {LOCALS} local variables, which no plugin needs"
            )));
        }
        let meetings = meetings(body, locals)?;
        if meetings > MEETINGS {
            return Err(Fault::Beyond(
                "one of its functions has too many branches and local variables to be compiled in bounded memory; split it"
                    .to_owned(),
            ));
        }
        let needs = size * BYTES_A_BYTE + meetings * BYTES_A_MEETING;
        self.largest = self.largest.max(needs);
        Ok(())
    }
}

/// The reason why a component is not compiled.
#[derive(Debug)]
pub(super) enum Fault {
    Malformed(String),
    Beyond(String),
}

impl From<wasmparser::Error> for Fault {
    fn from(error: wasmparser::Error) -> Self {
        Fault::Malformed(error.to_string())
    }
}

fn check_passed(kind: &wasmparser::SubType) -> Result<(), Fault> {
    let wasmparser::CompositeInnerType::Func(function) = &kind.composite_type.inner else {
        return Ok(());
    };
    let most = function.params().len().max(function.results().len());
    if most > PASSED {
        return Err(Fault::Beyond(format!(
            "a function or block has {most} parameters or results, at most {PASSED} are allowed"
        )));
    }
    Ok(())
}

/// Places where paths meet, times the variables in use and the passed values.
fn meetings(body: &FunctionBody<'_>, locals: u64) -> Result<u64, Fault> {
    let (mut places, mut uses, mut passed) = (1_u64, 0_u64, 0_u64);
    let mut passes_values = false;
    // True for each open block that is a loop: a variable meets itself at every loop around it.
    let (mut open, mut loops) = (Vec::new(), 0_u64);
    for operator in body.get_operators_reader()? {
        match operator? {
            Operator::Loop { blockty } => {
                open.push(true);
                loops += 1;
                places = places.saturating_add(loops);
                passes_values |= matches!(blockty, BlockType::FuncType(_));
            }
            Operator::Block { blockty }
            | Operator::If { blockty }
            | Operator::TryTable { try_table: wasmparser::TryTable { ty: blockty, .. } } => {
                open.push(false);
                places += 1;
                passes_values |= matches!(blockty, BlockType::FuncType(_));
            }
            Operator::End => loops -= u64::from(open.pop().unwrap_or(false)),
            Operator::Else => places += 1,
            Operator::BrTable { targets } => passed += u64::from(targets.len()),
            Operator::LocalGet { .. } | Operator::LocalSet { .. } | Operator::LocalTee { .. } => {
                uses += 1;
            }
            _ => {}
        }
    }
    let per_jump = if passes_values { PASSED as u64 } else { 1 };
    let met = places.saturating_mul(locals.min(uses));
    Ok(met.saturating_add(passed.saturating_mul(per_jump)))
}

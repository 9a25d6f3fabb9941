//! Queries in SQL that a user writes: reading only, with bounds of time and memory.

use rusqlite::ErrorCode;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use serde::Serialize;
use serde_json::Value;

use crate::{Store, StoreError};
use model::clock::Clock;
use model::units::Nanos;

/// The most bytes of a value, and of all values of an answer.
const VALUE_BYTES: i32 = 1_000_000;
const ANSWER_BYTES: usize = 64_000_000;

/// Steps of SQLite's machine from one look at the clock to the next: well below a millisecond.
const STEPS: i32 = 10_000;

/// The bounds of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub rows: usize,
    pub time: Nanos,
}

/// The answer to a query.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Answer {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
    /// True if there are more rows than the bounds allow.
    pub is_cut: bool,
}

impl Store {
    /// Answers a query. Fails if its text is anything but one `SELECT`, or takes too long.
    pub fn query(&mut self, sql: &str, bounds: Bounds) -> Result<Answer, StoreError> {
        let error = self.error();
        let clock = Clock::start();
        let is_late = move || clock.now() > bounds.time;
        self.connection
            .progress_handler(STEPS, Some(is_late))
            .and_then(|()| self.connection.authorizer(Some(reads)))
            .map_err(&error)?;
        self.connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES).map_err(&error)?;
        self.answer(sql, bounds.rows).map_err(|cause| match cause.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => {
                let seconds = bounds.time.as_secs_f64();
                mistake(format!("it takes longer than {seconds} s; narrow it, or raise --timeout"))
            }
            Some(ErrorCode::AuthorizationForStatementDenied) => {
                mistake("expected one SELECT that reads the index and changes nothing".into())
            }
            Some(ErrorCode::TooBig) => {
                mistake(format!("a value has more than {VALUE_BYTES} bytes; select less"))
            }
            // A name or a word that SQLite does not know.
            Some(ErrorCode::Unknown) => mistake(cause.to_string()),
            Some(_) => error(cause),
            None => mistake(cause.to_string()),
        })
    }

    fn answer(&self, sql: &str, most: usize) -> rusqlite::Result<Answer> {
        let mut statement = self.connection.prepare(sql)?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let width = columns.len();
        let mut answer = Answer { columns, rows: Vec::new(), is_cut: false };
        let mut bytes = 0;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if answer.rows.len() == most || bytes > ANSWER_BYTES {
                answer.is_cut = true;
                break;
            }
            let values = (0..width).map(|place| Ok(value(row.get_ref(place)?, &mut bytes)));
            answer.rows.push(values.collect::<rusqlite::Result<_>>()?);
        }
        Ok(answer)
    }
}

fn mistake(cause: String) -> StoreError {
    StoreError::Query { cause }
}

/// Allows the actions of a `SELECT`, and refuses every other action, such as `ATTACH`.
fn reads(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Select
        | AuthAction::Read { .. }
        | AuthAction::Function { .. }
        | AuthAction::Recursive => Authorization::Allow,
        _ => Authorization::Deny,
    }
}

fn value(found: ValueRef<'_>, bytes: &mut usize) -> Value {
    *bytes += size_of::<Value>();
    match found {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => {
            *bytes += text.len();
            String::from_utf8_lossy(text).into_owned().into()
        }
        ValueRef::Blob(blob) => {
            *bytes += 2 * blob.len();
            model::hex(blob).into()
        }
    }
}

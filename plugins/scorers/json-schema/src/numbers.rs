//! Numbers and equality as JSON Schema defines them: `1.0` is the integer 1, and a truth value is
//! no number.

use std::cmp::Ordering;

use serde_json::{Number, Value};

pub fn integer(number: &Number) -> Option<i128> {
    (number.as_i64().map(i128::from)).or_else(|| number.as_u64().map(i128::from)).or_else(|| {
        // Below 2^100 the conversion is exact.
        let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e30);
        float.map(|float| float as i128)
    })
}

pub fn compare(one: &Number, other: &Number) -> Ordering {
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => float(one).total_cmp(&float(other)),
    }
}

/// True if a number is a multiple of another, which is larger than 0.
pub fn is_multiple(number: &Number, of: &Number) -> bool {
    match (integer(number), integer(of)) {
        (Some(number), Some(of)) => number % of == 0,
        (_, Some(_)) => float(number) % float(of) == 0.0,
        (_, None) => {
            let quotient = float(number) / float(of);
            quotient.is_finite() && quotient.fract() == 0.0
        }
    }
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

pub fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare(one, other).is_eq(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && (one.iter())
                    .all(|(key, value)| other.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn number(value: &Value) -> Number {
        value.as_number().unwrap().clone()
    }

    #[test]
    fn floats_without_a_fraction_are_integers() {
        assert!(equal(&json!([1, {"a": 2.0}]), &json!([1.0, {"a": 2}])));
        assert!(!equal(&json!(1), &json!(true)));
        assert!(!equal(&json!(u64::MAX), &json!(u64::MAX - 1)));
        assert_eq!(integer(&number(&json!(1.5))), None);
    }

    #[test]
    fn multiples() {
        let is = |a: Value, b: Value| is_multiple(&number(&a), &number(&b));
        assert!(is(json!(6), json!(3)) && is(json!(7.5), json!(2.5)) && is(json!(4.0), json!(2)));
        assert!(
            !is(json!(7), json!(3)) && !is(json!(7.5), json!(2)) && !is(json!(1e308), json!(1e-9))
        );
    }
}

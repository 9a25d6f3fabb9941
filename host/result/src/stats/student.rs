//! Student's t distribution: how sure a figure is that rests on few values.

/// The probability of a value at least that far from zero, on either side, of `freedom` degrees of
/// freedom. With infinitely many it is the normal distribution's.
pub fn two_sided(t: f64, freedom: f64) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    // P(|T| > t) = I(ν / (ν + t²); ν/2, 1/2); from a million on it is the normal distribution's to
    // more digits than matter.
    let freedom = freedom.min(1e6);
    incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// How far from zero a value lies beyond which, on either side, are `outside` of them.
pub fn quantile(outside: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high, freedom) > outside && high < 1e12 {
        (low, high) = (high, high * 2.0);
    }
    // Halved until the bits are used up.
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if two_sided(middle, freedom) > outside {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// The regularised incomplete beta function, by its continued fraction (DLMF 8.17.22), evaluated as
/// Lentz does.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast below the mean; beyond, the function's mirror image does.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    front.exp() / a * fraction(x, a, b)
}

fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let kept = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / kept(1.0 - (a + b) * x / (a + 1.0));
    let mut whole = d;
    for step in 1..10_000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / kept(1.0 + term * d);
            c = kept(1.0 + term / c);
            change = c * d;
            whole *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    whole
}

/// The logarithm of the gamma function of a positive number: Stirling's series, from 10 on.
fn ln_gamma(x: f64) -> f64 {
    if x < 10.0 {
        return ln_gamma(x + 1.0) - x.ln();
    }
    let square = 1.0 / (x * x);
    let series =
        (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + (std::f64::consts::TAU).ln() / 2.0 + series
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantiles as printed in every table of the distribution.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, outside, wanted) in [
            (1.0, 0.05, 12.706_204_736),
            (2.0, 0.05, 4.302_652_730),
            (4.0, 0.05, 2.776_445_105),
            (9.0, 0.05, 2.262_157_163),
            (19.0, 0.05, 2.093_024_054),
            (19.0, 0.01, 2.860_934_606),
            (100.0, 0.05, 1.983_971_518),
            (f64::INFINITY, 0.05, 1.959_963_985),
        ] {
            let got = quantile(outside, freedom);
            assert!((got - wanted).abs() < 1e-5, "t({freedom}): {got}, {wanted}");
            assert!((two_sided(got, freedom) - outside).abs() < 1e-9);
        }
    }

    #[test]
    fn nothing_is_beyond_infinity_and_all_is_beyond_zero() {
        for freedom in [1.0, 3.0, 30.0] {
            assert_eq!(two_sided(0.0, freedom), 1.0);
            assert_eq!(two_sided(f64::INFINITY, freedom), 0.0);
            // The Cauchy distribution's, in closed form.
            let cauchy = 1.0 - 2.0 / std::f64::consts::PI * 3.0_f64.atan();
            assert!((two_sided(3.0, 1.0) - cauchy).abs() < 1e-12);
        }
    }
}

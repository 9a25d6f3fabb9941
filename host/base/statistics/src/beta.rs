//! The incomplete beta function, and the binomial distribution that follows from it.

/// The probability that at most `successes` of `trials` succeed, each with the same chance and
/// independently: `scipy.stats.binom.cdf`. Numbers between whole ones are interpolated, as the
/// incomplete beta function does.
pub fn binomial(trials: f64, chance: f64, successes: f64) -> f64 {
    if successes < 0.0 {
        return 0.0;
    }
    if successes >= trials {
        return 1.0;
    }
    incomplete_beta(1.0 - chance, trials - successes, successes + 1.0)
}

/// The regularised incomplete beta function, by its continued fraction (DLMF 8.17.22), evaluated as
/// Lentz does: `scipy.special.betainc(a, b, x)`, of positive `a` and `b`.
pub fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
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

/// The logarithm of the gamma function of a positive number: Stirling's series (DLMF 5.11.1), from
/// 10 on, and below it by recurrence; `scipy.special.gammaln`.
pub fn ln_gamma(x: f64) -> f64 {
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

    /// Sums of the distribution's terms, by hand.
    #[test]
    fn the_binomial_distribution_is_the_sum_of_its_terms() {
        assert!((binomial(2.0, 0.5, 0.0) - 0.25).abs() < 1e-12);
        assert!((binomial(2.0, 0.5, 1.0) - 0.75).abs() < 1e-12);
        assert!((binomial(100.0, 0.01, 0.0) - 0.99_f64.powi(100)).abs() < 1e-12);
        let two = 0.99_f64.powi(100) + 100.0 * 0.01 * 0.99_f64.powi(99);
        assert!((binomial(100.0, 0.01, 1.0) - two).abs() < 1e-12);
        assert_eq!((binomial(5.0, 0.3, -1.0), binomial(5.0, 0.3, 5.0)), (0.0, 1.0));
    }
}

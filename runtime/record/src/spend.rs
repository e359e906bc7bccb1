//! The cost of model calls: tokens, money, and the budgets of a run or a node.
//!
//! Money is counted in millionths of a dollar and always rounded up, so that a sum is never less than the real cost.

use crate::evidence::Tokens;
use crate::liveness::StallSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Maximum number of digits after the decimal point of an amount of money.
const DECIMALS: usize = 6;
/// Number of millionths in a dollar.
pub const MICRO: u64 = 1_000_000;

/// An amount of money in millionths of a US dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Money(pub u64);

impl Money {
    /// Returns true if the amount is zero.
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Money {
    /// Writes dollars without trailing zeros: `$0.5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / MICRO, self.0 % MICRO);
        match rest {
            0 => write!(f, "${whole}"),
            _ => write!(f, "${whole}.{}", format!("{rest:06}").trim_end_matches('0')),
        }
    }
}

/// The error for a text that is not an amount of money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected US dollars such as `5` or `0.25`, with at most six digits after the point")]
pub struct MoneyError;

impl FromStr for Money {
    type Err = MoneyError;

    /// Parses dollars, with or without a leading `$`.
    fn from_str(text: &str) -> Result<Self, MoneyError> {
        let text = text.trim().trim_start_matches('$');
        let (whole, rest) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        if !is_number(whole) || !is_number(rest) || rest.len() > DECIMALS {
            return Err(MoneyError);
        }
        let micro: u64 = format!("{rest:0<DECIMALS$}").parse().map_err(|_| MoneyError)?;
        let whole: u64 = whole.parse().map_err(|_| MoneyError)?;
        whole.checked_mul(MICRO).and_then(|whole| whole.checked_add(micro)).map(Self).ok_or(MoneyError)
    }
}

/// A provider's price for a million tokens of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// Price of tokens sent.
    pub input: Money,
    /// Price of tokens received.
    pub output: Money,
    /// Price of sent tokens that the provider reads from its cache; absent if it equals `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<Money>,
    /// Price of sent tokens that the provider writes to its cache; absent if it equals `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<Money>,
}

/// The sent tokens that the provider's cache affected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CachedTokens {
    /// Tokens read from the cache.
    pub read: u64,
    /// Tokens written to the cache.
    pub write: u64,
}

impl Price {
    /// Returns the cost of the tokens, rounded up.
    pub fn cost(&self, tokens: Tokens) -> Money {
        self.cost_cached(tokens, CachedTokens::default())
    }

    /// Returns the cost of the tokens, some of which the provider read from or wrote to its cache. Rounded up.
    pub fn cost_cached(&self, tokens: Tokens, cached: CachedTokens) -> Money {
        let cost = |tokens: u64, price: Money| u128::from(tokens) * u128::from(price.0);
        let fresh = tokens.input.saturating_sub(cached.read).saturating_sub(cached.write);
        let parts = [
            cost(fresh, self.input),
            cost(cached.read.min(tokens.input), self.cache_read.unwrap_or(self.input)),
            cost(cached.write.min(tokens.input), self.cache_write.unwrap_or(self.input)),
            cost(tokens.output, self.output),
        ];
        let sum = parts.into_iter().fold(0_u128, u128::saturating_add);
        Money(u64::try_from(sum.div_ceil(u128::from(MICRO))).unwrap_or(u64::MAX))
    }
}

/// Tokens and money of model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spend {
    /// Tokens sent and received.
    pub tokens: u64,
    /// Cost of the tokens.
    pub cost: Money,
}

impl Spend {
    /// Creates the spend of these tokens with their cost.
    pub fn new(tokens: Tokens, cost: Money) -> Self {
        Self { tokens: tokens.input.saturating_add(tokens.output), cost }
    }

    /// Returns the sum of this spend and `other`.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let cost = Money(self.cost.0.saturating_add(other.cost.0));
        Self { tokens: self.tokens.saturating_add(other.tokens), cost }
    }

    /// Returns this spend minus `other`, at least zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        let cost = Money(self.cost.0.saturating_sub(other.cost.0));
        Self { tokens: self.tokens.saturating_sub(other.tokens), cost }
    }
}

/// Tokens and money of model calls, as shown to people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpendTotals {
    /// Tokens sent and received; absent if none were counted.
    #[serde(default, skip_serializing_if = "Tokens::is_zero")]
    pub tokens: Tokens,
    /// Cost of the tokens, in millionths of a dollar; absent if it is unknown or zero.
    #[serde(default, skip_serializing_if = "Money::is_zero")]
    pub cost: Money,
    /// True if some of the tokens or their cost are estimated; absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_estimated: bool,
}

impl SpendTotals {
    /// Adds other totals to these.
    pub fn add(&mut self, more: Self) {
        self.tokens.add(more.tokens);
        self.cost = Money(self.cost.0.saturating_add(more.cost.0));
        self.is_estimated |= more.is_estimated;
    }
}

/// A budget of model calls. `None` means unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpendBounds {
    /// Maximum number of tokens sent and received together; absent if unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_max: Option<u64>,
    /// Maximum cost, in millionths of a dollar; absent if unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_max: Option<Money>,
}

impl SpendBounds {
    /// Returns true if nothing is limited.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the lower of the two values for each bound.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        Self {
            tokens_max: [self.tokens_max, other.tokens_max].into_iter().flatten().min(),
            cost_max: [self.cost_max, other.cost_max].into_iter().flatten().min(),
        }
    }

    /// Returns these bounds, with each missing bound taken from `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { tokens_max: self.tokens_max.or(other.tokens_max), cost_max: self.cost_max.or(other.cost_max) }
    }
}

/// The bounds of a run that command-line flags may lower.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunBounds {
    /// Maximum number of steps: the lower value of attribute and flag.
    pub steps_max: u64,
    /// Maximum time in which the run is executed, in milliseconds; absent if unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_max_ms: Option<u64>,
    /// Budget of model calls; absent if unlimited.
    #[serde(default, skip_serializing_if = "SpendBounds::is_unlimited")]
    pub spend_max: SpendBounds,
    /// Settings of the stall watchdog; absent if they are the default.
    #[serde(default, skip_serializing_if = "StallSettings::is_default")]
    pub stall: StallSettings,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_read_and_written_in_dollars() {
        for (text, micro, shown) in [("5", 5_000_000, "$5"), ("0.25", 250_000, "$0.25"), ("$0.000001", 1, "$0.000001")]
        {
            assert_eq!((text.parse(), Money(micro).to_string()), (Ok(Money(micro)), shown.to_owned()));
        }
        for text in
            ["", ".", "-1", "+1", "1.+5", "1.5x", "x1", "1e3", "0.0000001", "1.", "five", "99999999999999999999"]
        {
            assert_eq!(text.parse::<Money>(), Err(MoneyError), "{text}");
        }
    }

    #[test]
    fn a_cost_is_rounded_up() {
        let price = Price { input: Money(3 * MICRO), output: Money(15 * MICRO), ..Price::default() };
        assert_eq!(price.cost(Tokens { input: 1_000_000, output: 0 }), Money(3 * MICRO));
        assert_eq!(Price { input: Money(1), ..Price::default() }.cost(Tokens { input: 1, output: 9 }), Money(1));
        assert_eq!(price.cost(Tokens { input: u64::MAX, output: u64::MAX }), Money(u64::MAX));
        let cheap = Price { cache_read: Some(Money(MICRO)), cache_write: Some(Money(4 * MICRO)), ..price };
        let tokens = Tokens { input: 3_000_000, output: 0 };
        assert_eq!(cheap.cost_cached(tokens, CachedTokens { read: 1_000_000, write: 1_000_000 }), Money(8 * MICRO));
    }

    #[test]
    fn sums_and_bounds_count_both_directions_and_take_the_smaller_value() {
        let spent = Spend::new(Tokens { input: 5, output: 3 }, Money(7));
        assert_eq!(spent, Spend { tokens: 8, cost: Money(7) });
        let bounds = |tokens_max, cost_max: Option<u64>| SpendBounds { tokens_max, cost_max: cost_max.map(Money) };
        let (one, other) = (bounds(Some(5), Some(70)), bounds(Some(6), Some(60)));
        assert_eq!((one.least(other), other.least(one)), (bounds(Some(5), Some(60)), bounds(Some(5), Some(60))));
        assert_eq!(one.least(SpendBounds::default()), one);
        assert_eq!(bounds(None, Some(9)).or(one), bounds(Some(5), Some(9)));
        assert!(
            SpendBounds::default().is_unlimited()
                && !bounds(None, Some(0)).is_unlimited()
                && !bounds(Some(0), None).is_unlimited()
        );
    }
}

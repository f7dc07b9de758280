//! Sizes in bytes: `4 GB`, `512MiB`, `1.5` of a `GB`.
//!
//! Amounts are parsed as decimal text, without floating point. A size beyond the range of `u64`
//! becomes `u64::MAX`.

use std::fmt;

use super::duration::decimal;

/// Unit of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "plain words")]
pub enum ByteUnit {
    Bytes,
    Kilobytes,
    Megabytes,
    Gigabytes,
    Terabytes,
    Kibibytes,
    Mebibytes,
    Gibibytes,
    Tebibytes,
}

/// Spellings of the units. The first spelling of a unit is printed.
const SPELLINGS: [(&str, ByteUnit); 10] = [
    ("B", ByteUnit::Bytes),
    ("kB", ByteUnit::Kilobytes),
    ("KB", ByteUnit::Kilobytes),
    ("MB", ByteUnit::Megabytes),
    ("GB", ByteUnit::Gigabytes),
    ("TB", ByteUnit::Terabytes),
    ("KiB", ByteUnit::Kibibytes),
    ("MiB", ByteUnit::Mebibytes),
    ("GiB", ByteUnit::Gibibytes),
    ("TiB", ByteUnit::Tebibytes),
];

impl ByteUnit {
    /// Returns the unit with the spelling `name`.
    pub fn named(name: &str) -> Option<Self> {
        SPELLINGS.iter().find(|(spelling, _)| *spelling == name).map(|(_, unit)| *unit)
    }

    /// Returns every spelling, for suggestions.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SPELLINGS.iter().map(|(spelling, _)| *spelling)
    }

    /// Returns the unit as scripts write it.
    pub fn spelling(self) -> &'static str {
        SPELLINGS.iter().find(|(_, unit)| *unit == self).map_or("B", |(spelling, _)| spelling)
    }

    /// Returns the number of bytes of one unit.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Bytes => 1,
            Self::Kilobytes => 1000,
            Self::Megabytes => 1000 * 1000,
            Self::Gigabytes => 1000 * 1000 * 1000,
            Self::Terabytes => 1000 * 1000 * 1000 * 1000,
            Self::Kibibytes => 1 << 10,
            Self::Mebibytes => 1 << 20,
            Self::Gibibytes => 1 << 30,
            Self::Tebibytes => 1 << 40,
        }
    }

    /// Returns `amount` units in bytes, for a decimal number without a sign: `5`, `1.5`, `.5`.
    pub fn times(self, amount: &str) -> Option<u64> {
        decimal(amount, u128::from(self.bytes())).map(|bytes| bytes.try_into().unwrap_or(u64::MAX))
    }
}

/// Parses a number and its unit: `4GB`, `4 GB`, `1.5 GiB`. A number without a unit counts bytes.
pub fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (amount, unit) = (&text[..end], text[end..].trim_start());
    let unit = if unit.is_empty() { ByteUnit::Bytes } else { ByteUnit::named(unit)? };
    unit.times(amount)
}

/// Size in a clause, with an amount `N`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size<N> {
    /// Number of units. The value may have a fraction.
    pub amount: N,
    /// Unit of the amount, or `None` if the value of the amount includes the unit, as in `4GB`.
    pub unit: Option<ByteUnit>,
}

impl<N> Size<N> {
    /// Converts the amount.
    pub fn try_map<'c, N2, E>(
        &'c self,
        amount: impl FnOnce(&'c N) -> Result<N2, E>,
    ) -> Result<Size<N2>, E> {
        Ok(Size { amount: amount(&self.amount)?, unit: self.unit })
    }
}

/// Returns the bytes of an amount that a script computed; `None` if the text is no size.
pub fn bytes(amount: &str, unit: Option<ByteUnit>) -> Option<u64> {
    match unit {
        Some(unit) => unit.times(amount.trim()),
        None => parse(amount),
    }
}

/// Size for people, in a decimal unit: `640 B`, `1.25 MB`, `4 GB`.
pub struct HumanBytes(
    /// Size to display.
    pub u64,
);

impl fmt::Display for HumanBytes {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let units = [
            ByteUnit::Terabytes,
            ByteUnit::Gigabytes,
            ByteUnit::Megabytes,
            ByteUnit::Kilobytes,
            ByteUnit::Bytes,
        ];
        let unit = units.into_iter().find(|unit| self.0 >= unit.bytes()).unwrap_or(ByteUnit::Bytes);
        let (whole, rest) = (self.0 / unit.bytes(), self.0 % unit.bytes());
        let hundredths = u128::from(rest) * 100 / u128::from(unit.bytes());
        if hundredths == 0 {
            return write!(f, "{whole} {}", unit.spelling());
        }
        let fraction = format!("{hundredths:02}");
        write!(f, "{whole}.{} {}", fraction.trim_end_matches('0'), unit.spelling())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_and_binary_units_differ() {
        for (text, bytes) in [
            ("4GB", 4_000_000_000),
            ("4 GiB", 4 << 30),
            (" 1.5 kB ", 1500),
            ("1.5KB", 1500),
            ("0.5 MiB", 512 << 10),
            ("2 TB", 2_000_000_000_000),
            ("640 B", 640),
            ("12", 12),
            ("99999999999999 TiB", u64::MAX),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
        for bad in ["", "GB", "4 gb", "4 G", "-1 GB", "4 GB 2 MB", "1..5 GB", "4x"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn sizes_are_displayed_in_the_largest_unit() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1500, "1.5 kB"),
            (2_000_000_000, "2 GB"),
            (3_970_000_000, "3.97 GB"),
            (2_040_999_999, "2.04 GB"),
            (1 << 40, "1.09 TB"),
        ] {
            assert_eq!(HumanBytes(bytes).to_string(), text);
        }
    }
}

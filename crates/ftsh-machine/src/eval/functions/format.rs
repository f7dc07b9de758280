//! `format`: the directives of printf(1).

use bstr::{BString, ByteSlice};

use super::function::{Function, FunctionContext};
use crate::size;
use crate::values::{Number, Suspend, Value};
use ftsh_syntax::slug::Slug;

/// Maximum precision of numbers.
const MAX_PRECISION: usize = 1000;

pub(super) const FUNCTIONS: &[Function] = &[Function::new(
    "format",
    &[
        ("format(\"%05.1f %s\", 3.14159, \"a b\")", &["003.1 a b"]),
        ("format(\"%-6s%3d%%\", ok, 7)", &["ok      7%"]),
    ],
    format,
)];

/// Directive of a pattern, such as `%-8.3f`.
#[derive(Debug, Default, PartialEq)]
struct Directive {
    flags: Vec<u8>,
    width: usize,
    precision: Option<usize>,
    conversion: char,
}

fn format(context: &mut FunctionContext) -> Result<Value, Suspend> {
    context.spread()?;
    let pattern = context.text(0)?;
    let mut values = Values { context, next: 1 };
    let mut out = BString::default();
    let mut rest = &pattern[..];
    while let Some(at) = rest.find_byteset(b"%\\") {
        size::append(&mut out, &rest[..at])?;
        let is_escape = rest[at] == b'\\';
        rest = &rest[at + 1..];
        if is_escape {
            let (text, length) = escape(rest);
            size::append(&mut out, text)?;
            rest = &rest[length..];
        } else if rest.starts_with(b"%") {
            size::append(&mut out, b"%")?;
            rest = &rest[1..];
        } else {
            let directive = values.directive(&mut rest)?;
            let (sign, text) = values.convert(&directive)?;
            directive.pad(sign, &text, &mut out)?;
        }
    }
    size::append(&mut out, rest)?;
    let given = values.context.arguments().len();
    if values.next < given {
        let message = format!("there are too many values for `{pattern}`: {}", given - 1);
        return Err(Suspend::expression(Slug::Format, message));
    }
    context.count(out.len());
    Ok(Value::from(out))
}

/// Returns the text of the escape after a backslash, and the length of the escape.
fn escape(rest: &[u8]) -> (&'static [u8], usize) {
    match rest.first() {
        Some(b'n') => (b"\n", 1),
        Some(b't') => (b"\t", 1),
        Some(b'r') => (b"\r", 1),
        Some(b'\\') => (b"\\", 1),
        _ => (b"\\", 0),
    }
}

/// Arguments after the pattern, each of which is used once.
struct Values<'f, 'm> {
    context: &'f FunctionContext<'m>,
    next: usize,
}

impl Values<'_, '_> {
    /// Returns the position of the next argument.
    fn take(&mut self) -> Result<usize, Suspend> {
        let at = self.next;
        if at == self.context.arguments().len() {
            let pattern = self.context.text(0)?;
            let message = format!("there are too few values for `{pattern}`: {}", at - 1);
            return Err(Suspend::expression(Slug::Format, message));
        }
        self.next += 1;
        Ok(at)
    }

    /// Parses a directive after its `%`.
    fn directive(&mut self, rest: &mut &[u8]) -> Result<Directive, Suspend> {
        let whole = *rest;
        let mut directive = Directive::default();
        let flags = rest.iter().take_while(|byte| b"-+ #0".contains(byte)).count();
        directive.flags = rest[..flags].to_vec();
        *rest = &rest[flags..];
        let width = self.size(rest)?.unwrap_or(0);
        if width < 0 {
            directive.flags.push(b'-');
        }
        directive.width = width.unsigned_abs() as usize;
        if let Some(after) = rest.strip_prefix(b".") {
            *rest = after;
            let precision = self.size(rest)?.unwrap_or(0);
            directive.precision = usize::try_from(precision).ok();
        }
        let conversion = rest.chars().next().unwrap_or(' ');
        if !"diouxXeEfFgGsc".contains(conversion) {
            let length = whole.len() - rest.len() + conversion.len_utf8().min(rest.len());
            let shown = whole[..length].as_bstr();
            let message = format!("format has no directive `%{shown}`");
            return Err(Suspend::expression(Slug::Format, message));
        }
        directive.conversion = conversion;
        *rest = &rest[1..];
        let is_number = !matches!(conversion, 's' | 'c');
        if is_number && directive.precision.is_some_and(|it| it > MAX_PRECISION) {
            let message = format!("the precision of a number is at most {MAX_PRECISION}");
            return Err(Suspend::expression(Slug::Format, message));
        }
        Ok(directive)
    }

    /// Parses a width or a precision, which may be `*` for an argument.
    fn size(&mut self, rest: &mut &[u8]) -> Result<Option<i64>, Suspend> {
        if let Some(after) = rest.strip_prefix(b"*") {
            *rest = after;
            let at = self.take()?;
            return self.context.integer(at).map(Some);
        }
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, after) = rest.split_at(length);
        *rest = after;
        let number = digits.to_str_lossy().parse().unwrap_or(i64::MAX);
        Ok((length > 0).then_some(number))
    }

    /// Returns the text of the next argument, with its sign or prefix apart.
    fn convert(&mut self, directive: &Directive) -> Result<(&'static str, BString), Suspend> {
        let at = self.take()?;
        Ok(match directive.conversion {
            's' => {
                let text = self.context.text(at)?;
                let most = directive.precision.unwrap_or(usize::MAX);
                ("", size::copy(first_characters(&text, most))?)
            }
            'c' => ("", size::copy(first_characters(&self.context.text(at)?, 1))?),
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
                let decimal = self.context.number(at)?.decimal();
                let sign = directive.sign(decimal.is_sign_negative());
                (sign, directive.decimal(decimal.abs()).into())
            }
            conversion => {
                let whole = match self.context.number(at)? {
                    Number::Whole(whole) => whole,
                    Number::Decimal(_) => self.context.integer(at)?,
                };
                let (sign, digits) = match conversion {
                    'o' if directive.has(b'#') => ("0", format!("{whole:o}")),
                    'o' => ("", format!("{whole:o}")),
                    'x' => (directive.prefix(whole, "0x"), format!("{whole:x}")),
                    'X' => (directive.prefix(whole, "0X"), format!("{whole:X}")),
                    'u' => ("", (whole as u64).to_string()),
                    _ => (directive.sign(whole < 0), whole.unsigned_abs().to_string()),
                };
                let least = directive.precision.unwrap_or(1);
                (sign, format!("{digits:0>least$}").into())
            }
        })
    }
}

impl Directive {
    fn has(&self, flag: u8) -> bool {
        self.flags.contains(&flag)
    }

    fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.has(b'+'), self.has(b' ')) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        }
    }

    fn prefix(&self, number: i64, prefix: &'static str) -> &'static str {
        if self.has(b'#') && number != 0 { prefix } else { "" }
    }

    /// Formats a decimal without a sign.
    fn decimal(&self, decimal: f64) -> String {
        let precision = self.precision.unwrap_or(6);
        let text = match self.conversion {
            'e' | 'E' => scientific(decimal, precision),
            'g' | 'G' => self.general(decimal, precision.max(1)),
            _ => format!("{decimal:.precision$}"),
        };
        let text = if self.has(b'#') && !text.contains('.') {
            match text.find('e') {
                Some(at) => format!("{}.{}", &text[..at], &text[at..]),
                None => text + ".",
            }
        } else {
            text
        };
        if self.conversion.is_ascii_uppercase() { text.to_uppercase() } else { text }
    }

    /// Formats a decimal with this many significant digits, with an exponent if that is shorter.
    fn general(&self, decimal: f64, digits: usize) -> String {
        let text = scientific(decimal, digits - 1);
        let (base, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let number: i64 = exponent.parse().unwrap_or(0);
        let trimmed = |text: &str| {
            let has_zeros = text.contains('.') && !self.has(b'#');
            let short = text.trim_end_matches('0').trim_end_matches('.');
            if has_zeros { short.to_owned() } else { text.to_owned() }
        };
        if (-4..digits as i64).contains(&number) {
            let precision = usize::try_from(digits as i64 - 1 - number).unwrap_or(0);
            trimmed(&format!("{decimal:.precision$}"))
        } else {
            format!("{}e{exponent}", trimmed(base))
        }
    }

    /// Appends a text, padded to the width.
    fn pad(&self, sign: &str, text: &BString, out: &mut BString) -> Result<(), Suspend> {
        let length = text.to_str().map_or(text.len(), |text| text.chars().count());
        let fill = self.width.saturating_sub(sign.len() + length);
        if fill > size::MAX_VALUE_LEN {
            return Err(Suspend::from(size::ValueTooLong(fill)));
        }
        let is_decimal = matches!(self.conversion, 'e' | 'E' | 'f' | 'F' | 'g' | 'G');
        let is_number = !matches!(self.conversion, 's' | 'c');
        let zeros = self.has(b'0') && is_number && (is_decimal || self.precision.is_none());
        let filled = |byte: u8, count: usize| vec![byte; count];
        let (before, zeros, after) = match (self.has(b'-'), zeros) {
            (true, _) => (0, 0, fill),
            (false, true) => (0, fill, 0),
            (false, false) => (fill, 0, 0),
        };
        size::append(out, &filled(b' ', before))?;
        size::append(out, sign.as_bytes())?;
        size::append(out, &filled(b'0', zeros))?;
        size::append(out, text)?;
        size::append(out, &filled(b' ', after))
    }
}

/// Formats a decimal with an exponent of at least two digits, as C does.
fn scientific(decimal: f64, precision: usize) -> String {
    let text = format!("{decimal:.precision$e}");
    let (base, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = exponent.trim_start_matches('-');
    let sign = if exponent.starts_with('-') { '-' } else { '+' };
    format!("{base}e{sign}{digits:0>2}")
}

/// Returns the first characters of a text, or the first bytes if the text is not UTF-8.
fn first_characters(text: &[u8], most: usize) -> &[u8] {
    match text.to_str() {
        Ok(characters) => {
            let end = characters.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
            &text[..end]
        }
        Err(_) => &text[..text.len().min(most)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(conversion: char, precision: Option<usize>, decimal: f64) -> String {
        Directive { precision, conversion, ..Directive::default() }.decimal(decimal)
    }

    #[test]
    fn decimals_look_like_those_of_printf() {
        for (conversion, precision, decimal, text) in [
            ('f', None, 3.5, "3.500000"),
            ('f', Some(0), 2.5, "2"),
            ('e', None, 12345.678, "1.234568e+04"),
            ('E', Some(1), 0.000_12, "1.2E-04"),
            ('e', Some(0), 1e100, "1e+100"),
            ('g', None, 100_000.0, "100000"),
            ('g', None, 1_000_000.0, "1e+06"),
            ('g', None, 0.0001, "0.0001"),
            ('g', None, 0.000_012_5, "1.25e-05"),
            ('g', Some(3), 2.34567, "2.35"),
            ('G', Some(0), 1e-10, "1E-10"),
            ('g', None, 0.0, "0"),
        ] {
            assert_eq!(formatted(conversion, precision, decimal), text, "{conversion} {decimal}");
        }
    }
}

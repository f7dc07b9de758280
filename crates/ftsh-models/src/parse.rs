//! Parser of command models.

use std::str::FromStr;
use std::time::Duration;

use ftsh_machine::builtins;
use ftsh_syntax::duration::{self, Unit};
use ftsh_syntax::nearest::nearest;

use super::model::{CommandModel, DurationRange, Fails, Outage};
use super::tokens::{ModelToken, tokens};

/// Clauses of a model.
pub const CLAUSES: &str = "fails [30% | 2 times], exits N, takes TIME [to TIME] [or TIME if it fails], \
                           down [from TIME] for TIME [to TIME], hangs [1%], serves N, prints TEXT, \
                           ignores SIGTERM";

/// First words of clauses.
const KEYWORDS: [&str; 8] =
    ["fails", "exits", "takes", "down", "hangs", "serves", "prints", "ignores"];

/// Longest duration; sums of durations stay within range.
const LONGEST: Duration = Duration::from_secs(1000 * 86_400);

impl FromStr for CommandModel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let tokens = tokens(text)?;
        let is_keyword = |token: &ModelToken| !token.quoted && KEYWORDS.contains(&&*token.text);
        let first = tokens.iter().position(is_keyword);
        let (words, clauses) = tokens.split_at(first.unwrap_or(tokens.len()));
        check_words(words, first.is_none())?;
        let mut model = Self {
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
            words: words.iter().map(|word| word.text.clone()).collect(),
            fails: Fails::Never,
            hangs: 0.0,
            takes: None,
            failing: None,
            status: 1,
            down: Vec::new(),
            prints: None,
            places: None,
            is_stubborn: false,
        };
        let mut reader = ClauseReader { tokens: clauses, seen: Vec::new() };
        while let Some(keyword) = reader.next() {
            reader.clause(&keyword, &mut model)?;
        }
        let has = |clause: &str| reader.seen.iter().any(|seen| seen == clause);
        if has("exits") && !has("fails") && model.down.is_empty() {
            model.fails = Fails::Always;
        }
        if model.failing.is_some() && model.fails == Fails::Never && model.down.is_empty() {
            return Err(
                "`… if it fails` needs a failure: add `fails 30%` or `down for 20 min`".into()
            );
        }
        Ok(model)
    }
}

fn check_words(words: &[ModelToken], is_all: bool) -> Result<(), String> {
    let Some(name) = words.first() else {
        return Err(format!("missing command, as in `wget fails 30%`; clauses: {CLAUSES}"));
    };
    for (at, word) in words.iter().enumerate().skip(1).filter(|(_, word)| !word.quoted) {
        let is_like_a_clause = is_all
            || words.get(at + 1).is_some_and(|next| {
                next.text.starts_with(|c: char| c.is_ascii_digit()) || next.text == "for"
            });
        if let Some(near) = nearest(&word.text, KEYWORDS).filter(|_| is_like_a_clause) {
            return Err(format!(
                "unknown clause `{0}`, did you mean `{near}`? If `{0}` is an argument of {1}, quote it",
                word.text, name.text
            ));
        }
    }
    if is_all {
        return Err(format!("`{}` needs a clause: {CLAUSES}", name.text));
    }
    if builtins::named(&name.text).is_some() {
        return Err(format!("`{}` is a builtin of the shell and needs no model", name.text));
    }
    Ok(())
}

/// Parser of clauses.
struct ClauseReader<'t> {
    tokens: &'t [ModelToken],
    /// Keywords of earlier clauses.
    seen: Vec<String>,
}

impl ClauseReader<'_> {
    fn next(&mut self) -> Option<String> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first.text.clone())
    }

    fn peek(&self, ahead: usize) -> &str {
        self.tokens.get(ahead).filter(|token| !token.quoted).map_or("", |token| &token.text)
    }

    /// Consumes these words if they come next.
    fn take(&mut self, words: &[&str]) -> bool {
        let are_next = words.iter().enumerate().all(|(at, word)| self.peek(at) == *word);
        if are_next {
            self.tokens = &self.tokens[words.len()..];
        }
        are_next
    }

    fn clause(&mut self, keyword: &str, model: &mut CommandModel) -> Result<(), String> {
        if keyword != "down" && self.seen.iter().any(|seen| seen == keyword) {
            return Err(format!("duplicate clause `{keyword}`"));
        }
        match keyword {
            "fails" => model.fails = self.fails()?,
            "exits" => {
                model.status = self.whole("exits", 1..=255, "a status from 1 to 255")? as i32;
            }
            "takes" => {
                model.takes = Some(self.length("takes")?);
                if self.take(&["or"]) {
                    model.failing = Some(self.length("or")?);
                    if !self.take(&["if", "it", "fails"]) {
                        return Err("`or` must be complete: `takes 2s or 1 min if it fails`".into());
                    }
                }
            }
            "down" => {
                let zero = DurationRange { least: Duration::ZERO, most: Duration::ZERO };
                let from = if self.take(&["from"]) { self.length("from")? } else { zero };
                if !self.take(&["for"]) {
                    return Err("`down` needs a duration, as in `down for 20 minutes`, \
                                `down from 10 minutes for 1 to 2 hours`"
                        .into());
                }
                model.down.push(Outage { from, lasts: self.length("for")? });
            }
            "hangs" => model.hangs = self.percent()?.unwrap_or(1.0),
            "serves" => {
                let places = self.whole("serves", 1..=1_000_000, "how many at once")?;
                self.take(&["at", "once"]);
                model.places = Some(places as usize);
            }
            "prints" => match self.next() {
                Some(text) => model.prints = Some(format!("{text}\n").into()),
                None => return Err("`prints` needs a text, as in `prints \"200 OK\"`".into()),
            },
            "ignores" if self.take(&["SIGTERM"]) => model.is_stubborn = true,
            "ignores" => return Err("only SIGTERM can be ignored: write `ignores SIGTERM`".into()),
            // `wget fails 30% and takes 2s`
            "and" if KEYWORDS.contains(&self.peek(0)) => return Ok(()),
            other => {
                let hint = match nearest(other, KEYWORDS) {
                    Some(near) => format!("did you mean `{near}`? "),
                    None => String::new(),
                };
                return Err(format!("unknown clause `{other}`; {hint}clauses: {CLAUSES}"));
            }
        }
        self.seen.push(keyword.into());
        Ok(())
    }

    fn fails(&mut self) -> Result<Fails, String> {
        if matches!(self.peek(1), "time" | "times") {
            let times = self.whole("fails", 1..=u64::MAX, "how often")?;
            self.next();
            return Ok(Fails::First(times));
        }
        Ok(self.percent()?.map_or(Fails::Always, Fails::Chance))
    }

    /// Parses an optional percentage as a part of 1.
    fn percent(&mut self) -> Result<Option<f64>, String> {
        let text = self.peek(0).to_owned();
        if !text.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == '-') {
            return Ok(None);
        }
        self.next();
        let number = match text.strip_suffix('%') {
            Some(number) => number,
            None if self.take(&["%"]) => &text,
            None => return Err(format!("`{text}` is not a percentage, such as `30%`")),
        };
        match number.parse::<f64>() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Some(percent / 100.0)),
            _ => Err(format!("`{text}`: must be from 0% to 100%")),
        }
    }

    fn whole(
        &mut self,
        after: &str,
        range: std::ops::RangeInclusive<u64>,
        what: &str,
    ) -> Result<u64, String> {
        let text = self.next().unwrap_or_default();
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| match text.as_str() {
            "" => format!("`{after}` is followed by {what}"),
            text => format!("`{after} {text}`: expected a number, {what}"),
        })
    }

    /// Parses a length of time, or two with `to` between them. The first may share the unit of the
    /// second.
    fn length(&mut self, after: &str) -> Result<DurationRange, String> {
        let alone = self.peek(0).to_owned();
        let has_no_unit =
            self.peek(1) == "to" && alone.bytes().all(|it| it.is_ascii_digit() || it == b'.');
        if has_no_unit && !alone.is_empty() {
            self.tokens = &self.tokens[2..];
            let unit = match self.peek(1) {
                unit if Unit::named(unit).is_some() => Unit::named(unit),
                _ => Unit::named(self.peek(0).trim_start_matches(|c: char| !c.is_alphabetic())),
            };
            let least = unit.and_then(|unit| unit.times(&alone));
            let most = self.time(after)?;
            let least = least.ok_or_else(|| format!("`{after} {alone}`: missing unit"))?;
            return ordered(least, most, after);
        }
        let least = self.time(after)?;
        let most = if self.take(&["to"]) { self.time("to")? } else { least };
        ordered(least, most, after)
    }

    /// Parses a single length, such as `2s` or `20 minutes`.
    fn time(&mut self, after: &str) -> Result<Duration, String> {
        let text = self.next().unwrap_or_default();
        let unit = Unit::named(self.peek(0));
        let time = match unit.and_then(|unit| unit.times(&text)) {
            Some(time) => {
                self.next();
                Some(time)
            }
            None => duration::parse_joined(&text),
        };
        match time {
            Some(time) if time > LONGEST => Err(format!("`{after} …`: longer than 1000 days")),
            Some(time) => Ok(time),
            None if text.is_empty() => {
                Err(format!("`{after}` is followed by a length of time, like `90s`, `20 minutes`"))
            }
            None => Err(format!(
                "`{after} {text}`: not a length of time, like `90s`, `20 minutes` or `1h30m`"
            )),
        }
    }
}

fn ordered(least: Duration, most: Duration, after: &str) -> Result<DurationRange, String> {
    if least > most {
        return Err(format!("`{after} … to …`: the first is longer than the second"));
    }
    Ok(DurationRange { least, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(text: &str) -> CommandModel {
        text.parse().unwrap_or_else(|mistake| panic!("{text}: {mistake}"))
    }

    fn seconds(least: f64, most: f64) -> DurationRange {
        DurationRange { least: Duration::from_secs_f64(least), most: Duration::from_secs_f64(most) }
    }

    #[test]
    fn all_clauses_are_understood() {
        let all = model(
            "/usr/bin/wget -q 'fails' fails 30%, exits 4, takes 2s to 1.5 minutes or 5 s if it fails \
             down for 20 minutes down from 1h to 2h for 1 to 2 min hangs 0.5 % serves 3 at once \
             prints 'a b' and ignores SIGTERM",
        );
        assert_eq!(all.words, ["/usr/bin/wget", "-q", "fails"]);
        assert_eq!((all.fails, all.status, all.hangs), (Fails::Chance(0.3), 4, 0.005));
        assert_eq!((all.takes, all.failing), (Some(seconds(2.0, 90.0)), Some(seconds(5.0, 5.0))));
        let outage = |from, lasts| Outage { from, lasts };
        let down = [
            outage(seconds(0.0, 0.0), seconds(1200.0, 1200.0)),
            outage(seconds(3600.0, 7200.0), seconds(60.0, 120.0)),
        ];
        assert_eq!(all.down, down);
        assert_eq!(
            (all.prints, all.places, all.is_stubborn),
            (Some("a b\n".into()), Some(3), true)
        );
        assert_eq!(model("a fails 2 times").fails, Fails::First(2));
        assert_eq!(model("a exits 3").fails, Fails::Always);
        assert_eq!(model("a down for 1s exits 3").fails, Fails::Never);
        assert_eq!(model("a takes 2 to 20s").takes, Some(seconds(2.0, 20.0)));
        assert!(model("a hangs").hangs > 0.999);
    }

    #[test]
    fn a_model_is_about_commands_with_its_words_in_their_order() {
        let is_about = |text: &str, command: &str| {
            let words: Vec<_> = command.split(' ').map(Into::into).collect();
            model(text).applies_to(&words)
        };
        for command in ["wget", "/usr/bin/wget", "wget -q http://a.org/x"] {
            assert!(is_about("wget fails", command), "{command}");
        }
        assert!(!is_about("wget fails", "wgetx"));
        assert!(is_about("git clone fails", "git -C dir clone x"));
        assert!(!is_about("git clone fails", "git x"));
        assert!(!is_about("a b c fails", "a c b"));
        assert!(is_about("wget *a.org* fails", "wget -q http://a.org/x"));
        assert!(is_about("* fails", "anything"));
    }

    #[test]
    fn mistakes_say_what_is_allowed() {
        let mistake = |text: &str| text.parse::<CommandModel>().expect_err(text);
        let refused = |text: &str, words: &str| {
            let mistake = mistake(text);
            assert!(mistake.contains(words), "{text}: {mistake}");
            assert_eq!(mistake.lines().count(), 1, "{mistake}");
        };
        refused("", "missing command");
        refused("fails 30%", "missing command");
        refused("wget", "`wget` needs a clause: fails [30% | 2 times]");
        refused("wget fials", "did you mean `fails`?");
        refused("wget fials 30% takes 2s", "did you mean `fails`?");
        refused("wget fails 30% tkaes 2s", "did you mean `takes`?");
        refused("wget fails 130%", "must be from 0% to 100%");
        refused("wget fails -1%", "must be from 0% to 100%");
        refused("wget fails 3", "not a percentage");
        refused("wget fails 0 times", "expected a number");
        refused("wget fails fails", "duplicate clause");
        refused("wget exits 0", "a status from 1 to 255");
        refused("wget exits", "a status from 1 to 255");
        refused("wget takes", "is followed by a length of time");
        refused("wget takes 5", "not a length of time");
        refused("wget takes 5 parsecs", "not a length of time");
        refused("wget takes 5s to 2s", "longer than the second");
        refused("wget takes 5 to x", "not a length of time");
        refused("wget takes 5s or 2s", "must be complete");
        refused("wget takes 5s or 2s if it fails", "needs a failure");
        refused("wget takes 9999 days", "longer than 1000 days");
        refused("wget down", "needs a duration");
        refused("wget down 20 minutes", "needs a duration");
        refused("wget serves many", "how many at once");
        refused("wget prints", "`prints` needs a text");
        refused("wget prints 'a", "missing ' at the end");
        refused("wget ignores SIGKILL", "only SIGTERM");
        refused("wget fails sometimes", "unknown clause");
        refused("sleep takes 2s", "a builtin of the shell");
    }
}

//! One head, read by the parser of scripts.

use std::ffi::OsString;
use std::ops::Range;

use anyhow::{Error, Result};

use super::help::form;
use super::mistake::{self, Mark, marked};
use crate::cli::messages::usage;
use crate::cli::options::flags::head;
use ftsh_syntax::ast::{CommandKind, Expr, For, Script, Try};
use ftsh_syntax::clauses::TryClauses;
use ftsh_syntax::engine::EngineId;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::vocabulary::TIMES;
use ftsh_syntax::{SyntaxError, parse};

/// Name of a loop's variable while the parser reads its head.
const VARIABLE: &str = "word";

/// Words that are looked at for a command, where there is no `--`.
const MAX_HEAD: usize = 40;

/// Part of a head that a word is, with the number of the word on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Variable of a loop.
    Variable(usize),
    /// `in`, before a list.
    List(usize),
    /// Word of a list.
    Item(usize),
    /// `from`, before `input`.
    Input(usize),
    /// Text after `by`.
    Separator(usize),
    /// Engine after `on`.
    Engine(usize),
    /// Option or host of an engine.
    Option(usize),
    /// File after `once in`.
    File(usize),
    /// Word that the parser reads as it is.
    Raw(usize),
}

impl Piece {
    /// Returns the number of the word.
    fn word(self) -> usize {
        match self {
            Self::Variable(at)
            | Self::List(at)
            | Self::Item(at)
            | Self::Input(at)
            | Self::Separator(at)
            | Self::Engine(at)
            | Self::Option(at)
            | Self::File(at)
            | Self::Raw(at) => at,
        }
    }
}

/// A head.
#[derive(Debug)]
pub(super) struct Head {
    /// Keyword on the command line.
    pub keyword: &'static str,
    /// The structure, with an empty body.
    pub structure: Structure,
}

/// Structure that a head becomes.
#[derive(Debug)]
pub(super) enum Structure {
    /// `try` or `limit`.
    Try(Box<Try>),
    /// A loop, or the one branch of `on`. The list is empty.
    Loop {
        /// The loop.
        head: Box<For>,
        /// Variable that the command line names.
        named: Option<String>,
        /// Words of the list.
        items: Vec<OsString>,
    },
}

impl Head {
    /// Reads a head from its pieces. `start` is the number of its keyword.
    ///
    /// # Errors
    ///
    /// Fails with one line that marks the wrong word.
    pub(super) fn read(pieces: &[Piece], words: &[OsString], start: usize) -> Result<Self> {
        let keyword = head(&words[start]).ok_or_else(|| {
            usage(
                Slug::PrefixHead,
                format_args!(
                    "{}: no head; write `ftsh {}`",
                    marked(words, Mark::Word(start)),
                    form("try")
                ),
            )
        })?;
        if keyword == "limit" && pieces.is_empty() {
            let place = marked(words, Mark::Word(start));
            return Err(usage(
                Slug::MissingValue,
                format_args!("{place}: the time is missing; write `ftsh {}`", form(keyword)),
            ));
        }
        let is_number = |piece: &&Piece| matches!(piece, Piece::Raw(at) if TIMES.iter().any(|word| words[*at] == *word));
        if keyword == "limit"
            && let Some(piece) = pieces.iter().find(is_number)
        {
            let place = marked(words, Mark::Word(piece.word()));
            return Err(usage(
                Slug::PrefixHead,
                format_args!(
                    "{place}: `limit` takes a time; a number of attempts belongs to `try`: write \
                     `ftsh {}`",
                    form("try")
                ),
            ));
        }
        let source = Source::of(keyword, pieces, words, start)?;
        let script = parse(keyword, &source.text).map_err(|mut errors| {
            let error = &mut errors.errors[0];
            if keyword == "limit" {
                // The parser reads the head of a `try`.
                error.label = error.label.take().map(|label| label.replace("`times`, ", ""));
            }
            let mark = source.mark(error);
            mistake::option(words, mark).unwrap_or_else(|| {
                usage(error.slug, mistake::line(words, mark, error, form(keyword)))
            })
        })?;
        let refuse = |why: &str| -> Error {
            let place = marked(words, source.odd_word(words));
            usage(Slug::PrefixHead, format_args!("{place}: {why}; write `ftsh {}`", form(keyword)))
        };
        let structure = match only_command(script) {
            Some(CommandKind::Try(details)) if keyword == "limit" && !is_limit(&details) => {
                return Err(refuse("`limit` takes only a time, `stalled`, `memory` and `signal`"));
            }
            Some(CommandKind::Try(details)) => {
                let is_limit = keyword == "limit";
                Structure::Try(Box::new(Try { is_limit, ..*details }))
            }
            Some(CommandKind::For(head)) => loop_of(*head, pieces, words),
            _ => return Err(refuse("this is no head")),
        };
        Ok(Self { keyword, structure })
    }

    /// Returns the number of the first word that is no part of the head, so that it is probably the
    /// command. None if each word is a part, or if no word is.
    pub(super) fn command_among(
        pieces: &[Piece],
        words: &[OsString],
        start: usize,
    ) -> Option<usize> {
        let longest = pieces.len().min(MAX_HEAD);
        let is_head = |count: &usize| Self::read(&pieces[..*count], words, start).is_ok();
        let count = (0..=longest).rev().find(is_head)?;
        let Piece::Raw(at) = *pieces.get(count)? else { return None };
        let is_number = words[at].as_encoded_bytes().first().is_some_and(u8::is_ascii_digit);
        (!is_number).then_some(at)
    }

    /// True if the words of the loop come from standard input.
    pub(super) fn reads_words(&self) -> bool {
        match &self.structure {
            Structure::Try(_) => false,
            Structure::Loop { head, .. } => head.input.is_some(),
        }
    }

    /// True if the head is a loop or `on`, so that the command reads nothing.
    pub(super) fn is_loop(&self) -> bool {
        matches!(self.structure, Structure::Loop { .. })
    }
}

/// Returns true if a `try` has no clauses but those of a `limit`, and one attempt.
fn is_limit(details: &Try) -> bool {
    let Try {
        is_limit: _,
        around: _,
        clauses,
        usual: _,
        condition,
        atomic_in: _,
        through,
        body: _,
        catch: _,
        finally: _,
    } = details;
    let TryClauses {
        time,
        times,
        every,
        each,
        stalled: _,
        memory: _,
        backoff,
        signal: _,
        atomic,
        same_input,
    } = clauses;
    let has_more = every.is_some() || each.is_some() || backoff.is_some() || *atomic || *same_input;
    let is_one = times.as_ref().is_some_and(is_one);
    time.is_some() && is_one && !has_more && condition.is_none() && through.is_none()
}

/// Returns true if a number is written as 1.
pub(super) fn is_one(number: &Expr) -> bool {
    literal::expr(number).is_some_and(|text| text == "1")
}

/// Returns the only command of a script, if that is a structure with nothing in it.
fn only_command(script: Script) -> Option<CommandKind> {
    let [command] = <[_; 1]>::try_from(script.body.commands).ok()?;
    let is_empty = match &command.kind {
        CommandKind::Try(details) => {
            details.body.commands.is_empty() && details.catch.is_none() && details.finally.is_none()
        }
        CommandKind::For(head) => head.body.commands.is_empty(),
        _ => false,
    };
    (is_empty && command.redirects.is_empty()).then_some(command.kind)
}

fn loop_of(head: For, pieces: &[Piece], words: &[OsString]) -> Structure {
    let of = |wanted: fn(&Piece) -> Option<usize>| pieces.iter().filter_map(wanted);
    let variables = of(|piece| match piece {
        Piece::Variable(at) => Some(*at),
        _ => None,
    });
    let named = variables.map(|at| words[at].to_string_lossy().into_owned()).next();
    let items = of(|piece| match piece {
        Piece::Item(at) => Some(*at),
        _ => None,
    });
    let items = items.map(|at| words[at].clone()).collect();
    Structure::Loop { head: Box::new(For { list: Vec::new(), ..head }), named, items }
}

/// Text that the parser reads, and the words that it was made of.
struct Source {
    text: String,
    /// Positions of the words in the text, in order.
    places: Vec<(Range<usize>, usize)>,
    /// Number of the keyword.
    start: usize,
}

impl Source {
    fn of(
        keyword: &'static str,
        pieces: &[Piece],
        words: &[OsString],
        start: usize,
    ) -> Result<Self> {
        let mut source = Self { text: String::new(), places: Vec::new(), start };
        let begin = match keyword {
            "limit" => "try for",
            "on" => "forall word in 'x'",
            keyword => keyword,
        };
        source.add(begin, start);
        let has = |wanted: fn(&Piece) -> bool| pieces.iter().any(wanted);
        let lists = has(|piece| matches!(piece, Piece::List(_) | Piece::Input(_)));
        if lists && !has(|piece| matches!(piece, Piece::Variable(_))) {
            source.add(VARIABLE, start);
        }
        for (number, piece) in pieces.iter().enumerate() {
            source.add_piece(*piece, &pieces[number + 1..], words)?;
        }
        if keyword == "limit" {
            source.text += " or 1 time";
        }
        source.text += "\nend";
        Ok(source)
    }

    /// Adds a piece, before these others.
    fn add_piece(&mut self, piece: Piece, after: &[Piece], words: &[OsString]) -> Result<()> {
        let at = piece.word();
        if at == words.len() {
            let (place, forms) = (marked(words, Mark::End), EngineId::usage());
            let text = format!("{place}: the engine is missing; after `on` comes {forms}");
            return Err(usage(Slug::PrefixHead, text));
        }
        if let Piece::Item(_) = piece {
            // The script has the word itself.
            self.add("'x'", at);
            return Ok(());
        }
        let refuse = |why: String| {
            usage(Slug::PrefixHead, format_args!("{}: {why}", marked(words, Mark::Word(at))))
        };
        let word = words[at].to_str();
        let word = word.ok_or_else(|| refuse("a word of a head has to be UTF-8".into()))?;
        match piece {
            Piece::Input(_) => self.add("from input", at),
            Piece::File(_) => self.add(&quoted(word), at),
            Piece::Separator(_) => self.add(&format!("by {}", quoted(word)), at),
            Piece::Engine(_) if EngineId::named(word).is_none() => {
                let usage = EngineId::usage();
                return Err(refuse(format!(
                    "there is no engine `{word}`; after `on` comes {usage}"
                )));
            }
            Piece::Engine(_) => {
                self.add(&format!("on {word}"), at);
                // All options are one word for the engine.
                let options = after.iter().take_while(|it| matches!(it, Piece::Option(_)));
                let options: Vec<_> =
                    options.map(|it| words[it.word()].to_string_lossy()).collect();
                if !options.is_empty() {
                    self.add(&quoted(&options.join(" ")), at + 1);
                }
            }
            Piece::Option(_) => {}
            Piece::Raw(_) if word.is_empty() => self.add("''", at),
            Piece::Variable(_) | Piece::List(_) | Piece::Raw(_) | Piece::Item(_) => {
                self.add(word, at);
            }
        }
        Ok(())
    }

    fn add(&mut self, text: &str, word: usize) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        let from = self.text.len();
        self.text += text;
        self.places.push((from..self.text.len(), word));
    }

    /// Returns the word that a mistake is at.
    fn mark(&self, error: &SyntaxError) -> Mark {
        let at = error.span.start;
        let found = self.places.iter().find(|(place, _)| at < place.end);
        found.map_or(Mark::End, |(_, word)| Mark::Word(*word))
    }

    /// Returns the first word with a character that ends a head, or else the keyword.
    fn odd_word(&self, words: &[OsString]) -> Mark {
        let is_odd = |word: &usize| words[*word].to_string_lossy().contains(['\n', ';', '#']);
        let word = self.places.iter().map(|(_, word)| *word).find(is_odd);
        Mark::Word(word.unwrap_or(self.start))
    }
}

/// Returns text in single quotes.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"))
}

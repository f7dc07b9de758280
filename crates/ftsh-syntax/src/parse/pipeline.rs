//! Builder of pipelines: commands, and structures whose heads or ends are on the line.

use super::builder::Builder;
use super::line::{EndLine, Piped};
use super::misspelled::structure_in_succeeds;
use super::{Pair, Result, Rule, jump};
use crate::ast::{Pipeline, Redirect, RedirectionTarget, Stage, StageKind};
use crate::error::SyntaxError;
use crate::hint::hint;
use crate::slug::Slug;
use crate::span::Span;
use crate::vocabulary::{HEADS, KEYWORDS};

impl Builder<'_> {
    /// Builds an `inner_pipeline`, which has commands only.
    pub(super) fn pipeline(&mut self, pair: Pair) -> Result<Pipeline> {
        Ok(Pipeline { stages: self.piped(pair)?.stages })
    }

    /// Builds a `pipeline`.
    pub(super) fn piped(&mut self, pair: Pair) -> Result<Piped> {
        let start = self.span(&pair).start;
        self.stages(pair.into_inner(), start, None, false)
    }

    /// Builds an `end_line`.
    pub(super) fn end(&mut self, pair: Pair) -> Result<EndLine> {
        let start = self.span(&pair).start;
        let mut inner = pair.into_inner().peekable();
        let mut redirects = Vec::new();
        while let Some(pair) = inner.next_if(|pair| pair.as_rule() == Rule::redirection) {
            redirects.push(self.redirect(pair)?);
        }
        let Some(pipe) = inner.next() else { return Ok(EndLine { redirects, after: None }) };
        let piped = self.stages(inner, start, document(&redirects), true)?;
        Ok(EndLine { redirects, after: Some((pipe.as_str() == "|&", piped)) })
    }

    /// Builds commands with pipes between them, and possibly a head, of a line that begins at
    /// `start`.
    ///
    /// The text of a here-document begins on the line after its redirection, even if the pipeline
    /// continues there.
    fn stages<'i>(
        &mut self,
        pairs: impl Iterator<Item = Pair<'i>>,
        start: usize,
        mut document: Option<Span>,
        follows: bool,
    ) -> Result<Piped> {
        let mut piped = Piped::default();
        let mut pairs = pairs.peekable();
        while let Some(pair) = pairs.next() {
            let span = self.span(&pair);
            let goes_on = |from: usize| self.text[from..span.start].contains('\n');
            if let Some(document) = document.filter(|document| goes_on(document.end)) {
                return Err(in_the_way(document, span).into());
            }
            let is_inner = pair.as_rule() == Rule::inner_command;
            if self.is_own_head(pair.as_rule()) {
                piped.stages.extend(self.own_command(&pair)?.stages);
                break;
            }
            if !is_inner && pair.as_rule() != Rule::command {
                piped.on_one_line = !goes_on(start);
                piped.head = Some((self.head(pair)?, span));
                break;
            }
            let is_alone = !follows && piped.stages.is_empty() && pairs.peek().is_none();
            if is_inner || !is_alone {
                self.check_stage(pair.as_str(), span, is_inner)?;
            }
            let simple = self.simple(pair)?;
            document = document.or_else(|| self::document(&simple.redirects));
            let pipe_errors = pairs.next().is_some_and(|pipe| pipe.as_str() == "|&");
            piped.stages.push(Stage { kind: StageKind::Simple(simple), pipe_errors });
        }
        Ok(piped)
    }

    /// Refuses statements about the whole script, because each stage runs by itself.
    pub(super) fn check_stage(&self, text: &str, span: Span, is_inner: bool) -> Result<()> {
        let stages = || hint!("a stage is a command, a call or a structure");
        let ends = |c: char| c.is_whitespace() || matches!(c, ';' | '|' | '&' | '<' | '>' | ')');
        let word = text.split(ends).next().unwrap_or_default();
        let is_all = word.len() == text.trim_end().len();
        let (slug, message, hint) = match word {
            _ if self.functions.contains(word) => return Ok(()),
            _ if is_inner && HEADS.contains(&word) => {
                let span = Span::new(span.start, span.start + word.len());
                return Err(Box::new(structure_in_succeeds(span, word)));
            }
            _ if is_inner => return Ok(()),
            "function" => (
                Slug::FunctionOutput,
                "a function's definition can't be a stage of a pipeline".to_owned(),
                hint!("define the function on lines of its own, and call the function here"),
            ),
            "local" => (
                Slug::PipelineStage,
                "an assignment can't be a stage of a pipeline".to_owned(),
                stages(),
            ),
            "break" | "continue" if is_all => (
                Slug::PipelineStage,
                format!("`{word}` can't be a stage of a pipeline"),
                jump::ends(),
            ),
            "return" => (
                Slug::PipelineStage,
                "`return` can't be a stage of a pipeline".to_owned(),
                jump::ends(),
            ),
            _ if KEYWORDS.contains(&word) => {
                (Slug::PipelineStage, format!("`{word}` can't be a stage of a pipeline"), stages())
            }
            _ => return Ok(()),
        };
        let span = Span::new(span.start, span.start + word.len());
        Err(Box::new(SyntaxError::new(slug, span, message).hint(hint)))
    }
}

/// Returns the span of the first here-document among redirections.
fn document(redirects: &[Redirect]) -> Option<Span> {
    let is_document = |it: &&Redirect| matches!(it.target, RedirectionTarget::HereDocument { .. });
    redirects.iter().find(is_document).map(|it| it.span)
}

fn in_the_way(document: Span, stage: Span) -> SyntaxError {
    SyntaxError::new(
        Slug::HereDocumentInPipeline,
        stage,
        "the text of a here-document interrupts this pipeline",
    )
    .related(document, "the text begins on the next line")
    .hint(hint!("write the whole pipeline on one line, then the text"))
}

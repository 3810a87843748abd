//! The options that shape stacks.

use anyhow::Result;
use chronosym::{Shape, ShapeError};
use clap::{Args, ValueEnum};

use crate::args::Usage;

/// How stacks are shaped before they are shown.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Shape")]
pub struct Shaping {
    /// Only stacks with a frame whose `module!name` matches; given several times, any of them.
    #[arg(long, value_name = "REGEX")]
    include: Vec<String>,
    /// No stacks with a frame whose `module!name` matches.
    #[arg(long, value_name = "REGEX")]
    exclude: Vec<String>,
    /// Merge frames whose `module!name` matches into their callers.
    #[arg(long, value_name = "REGEX")]
    fold: Vec<String>,
    /// Join neighbouring frames of one module.
    #[arg(long, value_enum, value_name = "WHAT")]
    group: Option<Grouping>,
    /// Join what is not of the program itself: the frames of runtime, class library and system, and of libraries whose PDBs
    /// say that they were built elsewhere.
    #[arg(long)]
    just_my_code: bool,
    /// As --just-my-code, but the program is the modules of this name, in which * and ? stand for others; may be given
    /// several times.
    #[arg(long, value_name = "GLOB")]
    my_modules: Vec<String>,
    /// Merge inlined frames into what they are inlined into.
    #[arg(long)]
    no_inlines: bool,
    /// Show one round of functions that call each other over and over.
    #[arg(long)]
    collapse_recursion: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Grouping {
    Module,
}

impl Shaping {
    /// The shape that the options make.
    pub fn shape(&self) -> Result<Shape> {
        let shape = || -> Result<Shape, ShapeError> {
            let add = |shape: Result<Shape, _>, patterns: &[String], step: Step| {
                patterns.iter().try_fold(shape?, |shape, p| step(shape, p))
            };
            let mut shape = add(Ok(Shape::default()), &self.include, Shape::include);
            shape = add(shape, &self.exclude, Shape::exclude);
            shape = add(shape, &self.fold, Shape::fold);
            shape = add(shape, &self.my_modules, Shape::my_modules);
            let mut shape = shape?;
            if self.just_my_code {
                shape = shape.just_my_code();
            }
            if self.group == Some(Grouping::Module) {
                shape = shape.group_modules();
            }
            if self.no_inlines {
                shape = shape.no_inlines();
            }
            if self.collapse_recursion {
                shape = shape.collapse_recursion();
            }
            Ok(shape)
        };
        shape().map_err(|error| Usage(error.to_string()).into())
    }
}

type Step = fn(Shape, &str) -> Result<Shape, ShapeError>;

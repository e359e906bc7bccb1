//! The files that a draft refers to: prompts, schemas and child pipelines. This module reads no files.

use super::Draft;
use crate::files::{CHILD, References, child, fault, named, reference};
use crate::inputs::Inputs;
use crate::key;

impl Draft<'_> {
    /// Returns the files that this draft refers to.
    pub(crate) fn references(&self, inputs: &Inputs) -> References {
        let graph = self.graph(inputs);
        let sealed = Draft::sealed(&graph);
        let fits = |path: &&str| fault(path, &sealed).is_none();
        let texts = [key::PROMPT, key::OUTPUT_SCHEMA, key::JSON_SCHEMA].into_iter().flat_map(|key| self.of_nodes(key));
        let prompts = texts.filter_map(|text| reference(text));
        let prompts = prompts.filter(fits).map(str::to_owned).collect();
        let mut children = named(child(&graph).into_iter().chain(self.of_nodes(CHILD)));
        children.retain(|child| fits(&child.path.as_str()));
        References { prompts, children, sealed }
    }
}

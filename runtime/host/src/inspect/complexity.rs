//! Validates a component, with a bound on the effort that one function can cause in validator and compiler.
//!
//! Validator and compiler need more memory and time than the length of a function suggests. The validator keeps every value of the
//! operand stack, and a call with a thousand results is only two bytes long. The compiler keeps each local and each value for every
//! place where control flow splits or merges. So the parts of each function are counted during validation, which stops at the first
//! function that exceeds the bound. Nothing is compiled.

use crate::inspect::{InspectError, items};
use wasmparser::{
    CompositeInnerType, FuncToValidate, FuncValidatorAllocations, FunctionBody, Parser, Payload, ValidPayload,
    Validator, ValidatorResources, WasmFeatures,
};

/// Maximum length of a function's body, in bytes.
pub(crate) const FUNCTION_BYTES_MAX: u64 = 1 << 20;

/// Maximum complexity of a function: `branches × (locals + values on the stack) + calls × the widest signature`. The compiler takes
/// about 30 bytes of memory for each unit. The most complex function of the built-in components reaches a hundredth of it.
pub(crate) const COMPLEXITY_MAX: u64 = 8 << 20;

/// Validates a component function by function, each within the bounds.
pub(crate) fn validate(bytes: &[u8], features: WasmFeatures) -> Result<(), InspectError> {
    let mut validator = Validator::new_with_features(features);
    let (mut functions, mut widest) = (Vec::new(), 0);
    let mut parser = Parser::new(0);
    parser.set_features(features);
    for payload in parser.parse_all(bytes) {
        let payload = payload?;
        if let Payload::CodeSectionEntry(body) = &payload {
            let bytes = body.as_bytes().len() as u64;
            if bytes > FUNCTION_BYTES_MAX {
                return Err(InspectError::FunctionTooLong { bytes, limit: FUNCTION_BYTES_MAX });
            }
        }
        if let ValidPayload::Func(function, body) = validator.payload(&payload)? {
            functions.push((function, body));
        }
        widest = widest.max(widest_signature(&payload)?);
    }
    let mut allocations = FuncValidatorAllocations::default();
    for (function, body) in functions {
        allocations = check(function, &body, widest, allocations)?;
    }
    Ok(())
}

/// Returns the number of parameters and results of the widest function type that a module declares.
fn widest_signature(payload: &Payload<'_>) -> Result<u64, InspectError> {
    let Payload::TypeSection(types) = payload else { return Ok(0) };
    let mut widest = 0;
    for group in items(types) {
        for declared in group?.types() {
            if let CompositeInnerType::Func(function) = &declared.composite_type.inner {
                widest = widest.max((function.params().len() + function.results().len()) as u64);
            }
        }
    }
    Ok(widest)
}

fn check(
    function: FuncToValidate<ValidatorResources>,
    body: &FunctionBody<'_>,
    widest: u64,
    allocations: FuncValidatorAllocations,
) -> Result<FuncValidatorAllocations, InspectError> {
    let (index, features) = (function.index, function.features);
    let mut validator = function.into_validator(allocations);
    let mut reader = body.get_binary_reader();
    validator.read_locals(&mut reader)?;
    reader.set_features(features);
    let (start, code) = (body.range().start, body.as_bytes());
    let mut counted = FunctionCounts { locals: validator.len_locals().into(), widest, ..FunctionCounts::default() };
    while !reader.eof() {
        let at = reader.original_position();
        reader.visit_operator(&mut validator.visitor(at))??;
        let operator =
            code.get((at - start) as usize..(reader.original_position() - start) as usize).unwrap_or_default();
        counted.add(operator, validator.operand_stack_height().into());
        let complexity = counted.complexity();
        if complexity > COMPLEXITY_MAX {
            return Err(InspectError::FunctionTooComplex { function: index, limit: COMPLEXITY_MAX });
        }
    }
    reader.finish_expression(&validator.visitor(reader.original_position()))?;
    Ok(validator.into_allocations())
}

/// Counts of a function that is being validated.
#[derive(Default)]
struct FunctionCounts {
    locals: u64,
    /// Maximum number of values on the operand stack.
    values: u64,
    /// Number of places where control flow splits or merges, plus one.
    branches: u64,
    calls: u64,
    widest: u64,
}

impl FunctionCounts {
    fn add(&mut self, operator: &[u8], values: u64) {
        self.values = self.values.max(values);
        match operator.first() {
            // `block`, `loop`, `if`, `else`, `br`, `br_if`.
            Some(0x02..=0x05 | 0x0c | 0x0d) => self.branches += 1,
            // `br_table`: each target takes at least one byte.
            Some(0x0e) => self.branches += operator.len() as u64,
            // `call`, `call_indirect`, `return_call` and `return_call_indirect`.
            Some(0x10..=0x13) => self.calls += 1,
            _ => {}
        }
    }

    fn complexity(&self) -> u64 {
        let flow = (self.branches + 1).saturating_mul(self.locals + self.values);
        flow.saturating_add(self.calls.saturating_mul(self.widest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::inspect;
    use std::path::Path;

    fn component(types: &str, locals: usize, body: &str) -> Vec<u8> {
        let locals = "i32 ".repeat(locals);
        wat::parse_str(format!("(component (core module {types} (func (local {locals}) {body})))")).unwrap()
    }

    #[track_caller]
    fn refused(bytes: &[u8]) {
        let error = inspect(bytes).unwrap_err();
        assert!(matches!(error, InspectError::FunctionTooComplex { .. }), "{error}");
    }

    #[test]
    fn a_function_too_long_for_the_compiler_never_reaches_it() {
        let error = inspect(&component("", 0, &"nop ".repeat(1 << 20))).unwrap_err();
        assert!(matches!(error, InspectError::FunctionTooLong { .. }), "{error}");
    }

    #[test]
    fn what_the_compiler_multiplies_is_bounded_together() {
        refused(&component("", 50_000, &format!("{} {}", "loop ".repeat(20_000), "end ".repeat(20_000))));
        refused(&component("", 20_000, &"block end ".repeat(1_000)));
        refused(&component("", 20_000, &"block br 0 end ".repeat(500)));
        let table = format!("block i32.const 0 br_table {} end ", "0 ".repeat(400_000));
        refused(&component("", 50, &table));
        // Values on the stack are live across the following branches, as locals are.
        refused(&component("", 0, &format!("{} {} return", "i32.const 1 ".repeat(9_000), "block end ".repeat(2_000))));
        assert!(inspect(&component("", 800, &"block end ".repeat(10_000))).is_ok());
        assert!(inspect(&component("", 50_000, "nop")).is_ok());
    }

    #[test]
    fn wide_calls_are_counted_and_their_results_never_pile_up() {
        let results = "i32 ".repeat(1_000);
        let import = format!("(import \"a\" \"b\" (func $wide (param {results}) (result {results})))");
        let many = format!("(import \"a\" \"b\" (func $wide (result {results})))");
        // Each call takes two bytes: half a million of them produce five hundred million values.
        refused(&component(&many, 0, &format!("{} return", "call $wide ".repeat(500_000))));
        let args = "i32.const 1 ".repeat(1_000);
        refused(&component(&import, 0, &format!("{args} {} return", "call $wide ".repeat(100_000))));
    }

    #[test]
    fn components_as_they_are_built_are_far_below() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/components");
        let mut seen = 0;
        for entry in std::fs::read_dir(folder).expect("built by `cargo xtask components`").map(Result::unwrap) {
            if entry.path().extension().is_some_and(|extension| extension == "wasm") {
                inspect(&std::fs::read(entry.path()).unwrap()).unwrap();
                seen += 1;
            }
        }
        assert!(seen >= 3, "{seen} components");
    }
}

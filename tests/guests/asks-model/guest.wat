  ;; Asks the model until it is refused, then notes how often it was answered and calls that a success.
  (import "glovebox:plugin/llm@0.1.0" "complete" (func $complete (param i32 i32 i32 i32 i32 i32 i32)))
  (func $execute (local $answered i32)
    (block $refused
      (loop $again
        (call $complete (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 128))
        (br_if $refused (i32.load8_u (i32.const 128)))
        (local.set $answered (i32.add (local.get $answered) (i32.const 1)))
        (br $again)))
    ;; Two digits.
    (i32.store8 (i32.const 1024) (i32.add (i32.const 48) (i32.div_u (local.get $answered) (i32.const 10))))
    (i32.store8 (i32.const 1025) (i32.add (i32.const 48) (i32.rem_u (local.get $answered) (i32.const 10))))
    (call $notes (i32.const 1024) (i32.const 2)))

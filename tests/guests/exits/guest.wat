  ;; Leaves by exit(0) instead of answering.
  (import "wasi:cli/exit@0.2.6" "exit" (func $exit (param i32)))
  (func $execute (call $exit (i32.const 0)))

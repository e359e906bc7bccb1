  ;; Runs a command that prints seven megabytes; notes how much of its head it was given.
  (import "glovebox:plugin/exec@0.1.0" "run" (func $run
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i64 i32 i32 i32)))
  (data (i32.const 1024) "seq1000000")
  ;; argv: two strings.
  (data (i32.const 1048) "\00\04\00\00\03\00\00\00\03\04\00\00\07\00\00\00")
  (func $execute
    (call $run (i32.const 1048) (i32.const 2)
      (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const 0) (i64.const 0)
      (i32.const 0) (i32.const 0) (i32.const 128))
    (if (i32.load8_u (i32.const 128)) (then (call $status (i32.const 3)) (return)))
    (call $notes (i32.load (i32.const 160)) (i32.load (i32.const 164))))

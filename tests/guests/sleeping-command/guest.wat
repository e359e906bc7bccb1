  ;; Runs `sleep 600` and, should that ever come back, notes how it ended.
  (import "glovebox:plugin/exec@0.1.0" "run" (func $run
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i64 i32 i32 i32)))
  (data (i32.const 1024) "sleep600")
  ;; argv: two strings.
  (data (i32.const 1048) "\00\04\00\00\05\00\00\00\05\04\00\00\03\00\00\00")
  (func $execute
    (call $run (i32.const 1048) (i32.const 2)
      (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const 0) (i64.const 0)
      (i32.const 0) (i32.const 0) (i32.const 128))
    ;; The first field of the exit record and of the error alike.
    (call $notes (i32.load (i32.const 136)) (i32.load (i32.const 140))))

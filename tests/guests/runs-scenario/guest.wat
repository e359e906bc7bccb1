  ;; Runs `sh scripts/scenarios/check.sh`. Fails with the error code or a non-zero exit, else claims that the command passed.
  (import "glovebox:plugin/exec@0.1.0" "run" (func $run
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i64 i32 i32 i32)))
  (data (i32.const 1024) "command-passed")
  (data (i32.const 1040) "sh")
  (data (i32.const 1044) "scripts/scenarios/check.sh")
  ;; argv: two strings.
  (data (i32.const 1072) "\10\04\00\00\02\00\00\00\14\04\00\00\1a\00\00\00")
  (func $execute
    (call $run (i32.const 1072) (i32.const 2)
      (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const 0) (i64.const 0)
      (i32.const 0) (i32.const 0) (i32.const 128))
    (if (i32.load8_u (i32.const 128))
      (then (call $notes (i32.load (i32.const 136)) (i32.load (i32.const 140))) (call $status (i32.const 3)))
      (else
        ;; The exit code is the second field of the exit record, the receipt the last but one.
        (if (i32.load (i32.const 148)) (then (call $status (i32.const 3))))
        (i32.store (i32.const 1096) (i32.const 1024))
        (i32.store (i32.const 1100) (i32.const 14))
        (i32.store (i32.const 1104) (i32.load (i32.const 232)))
        (i32.store (i32.const 1108) (i32.load (i32.const 236)))
        (i32.store (i32.const 84) (i32.const 1096))
        (i32.store (i32.const 88) (i32.const 1)))))

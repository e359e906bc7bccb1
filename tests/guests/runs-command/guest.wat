  ;; Runs `true`, notes the error code or the receipt, and claims that the command passed by that receipt.
  (import "glovebox:plugin/exec@0.1.0" "run" (func $run
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i64 i32 i32 i32)))
  (data (i32.const 1024) "truecommand-passed")
  ;; argv: one string.
  (data (i32.const 1048) "\00\04\00\00\04\00\00\00")
  (func $execute
    (call $run (i32.const 1048) (i32.const 1)
      (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const 0) (i64.const 0)
      (i32.const 0) (i32.const 0) (i32.const 128))
    (if (i32.load8_u (i32.const 128))
      (then (call $notes (i32.load (i32.const 136)) (i32.load (i32.const 140))) (call $status (i32.const 3)))
      (else
        ;; The receipt is the last but one field of the exit record.
        (call $notes (i32.load (i32.const 232)) (i32.load (i32.const 236)))
        (i32.store (i32.const 1064) (i32.const 1028))
        (i32.store (i32.const 1068) (i32.const 14))
        (i32.store (i32.const 1072) (i32.load (i32.const 232)))
        (i32.store (i32.const 1076) (i32.load (i32.const 236)))
        (i32.store (i32.const 84) (i32.const 1064))
        (i32.store (i32.const 88) (i32.const 1)))))

  ;; Rewrites one file without end; notes the error that stopped it.
  (import "glovebox:plugin/files@0.1.0" "write" (func $write (param i32 i32 i32 i32 i32)))
  (data (i32.const 1024) "big.bin")
  (func $execute
    (loop $again
      (call $write (i32.const 1024) (i32.const 7) (i32.const 2048) (i32.const 32768) (i32.const 128))
      (br_if $again (i32.eqz (i32.load8_u (i32.const 128)))))
    (call $notes (i32.load (i32.const 132)) (i32.load (i32.const 136))))

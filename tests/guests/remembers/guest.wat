  ;; Counts its calls in a global and in memory; notes both.
  (global $calls (mut i32) (i32.const 48))
  (data (i32.const 1024) "00")
  (func $execute
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (i32.store8 (i32.const 1024) (global.get $calls))
    (i32.store8 (i32.const 1025) (i32.add (i32.load8_u (i32.const 1025)) (i32.const 1)))
    (call $notes (i32.const 1024) (i32.const 2)))

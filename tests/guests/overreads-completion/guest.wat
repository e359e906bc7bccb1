  ;; Streams an answer one event at a time and reads on after its end; notes how many events there were.
  (import "glovebox:plugin/llm@0.1.0" "start" (func $start (param i32 i32 i32 i32 i32 i32 i32)))
  (import "glovebox:plugin/llm@0.1.0" "[method]completion.next" (func $next (param i32 i32 i32 i32)))
  (func $execute (local $completion i32) (local $events i32)
    (call $start (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 128))
    (if (i32.load8_u (i32.const 128)) (then (call $status (i32.const 3)) (return)))
    (local.set $completion (i32.load (i32.const 132)))
    (block $over
      (loop $again
        (call $next (local.get $completion) (i32.const 1) (i32.const 0) (i32.const 128))
        (br_if $over (i32.load8_u (i32.const 128)))
        (local.set $events (i32.add (local.get $events) (i32.load (i32.const 136))))
        (br $again)))
    (i32.store8 (i32.const 1024) (i32.add (i32.const 48) (local.get $events)))
    (call $notes (i32.const 1024) (i32.const 1)))

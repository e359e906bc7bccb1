  ;; Asks the model once with a tool `write_file`, and notes whether the word FORBIDDE lies anywhere in what it was given: a component
  ;; that would do what a hook refused must first know it.
  (import "glovebox:plugin/llm@0.1.0" "complete" (func $complete (param i32 i32 i32 i32 i32 i32 i32)))
  (data (i32.const 1100) "write_file{}")
  (func $execute (local $at i32) (local $end i32) (local $found i32)
    ;; One tool: name, description, parameters.
    (i32.store (i32.const 1200) (i32.const 1100)) (i32.store (i32.const 1204) (i32.const 10))
    (i32.store (i32.const 1208) (i32.const 1100)) (i32.store (i32.const 1212) (i32.const 0))
    (i32.store (i32.const 1216) (i32.const 1110)) (i32.store (i32.const 1220) (i32.const 2))
    (call $complete (i32.const 0) (i32.const 0) (i32.const 1200) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 128))
    (if (i32.load8_u (i32.const 128)) (then (call $status (i32.const 3)) (return)))
    (local.set $end (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 8)))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (if (i64.eq (i64.load (local.get $at)) (i64.const 0x4544444942524f46)) (then (local.set $found (i32.const 1)) (br $done)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next)))
    ;; `0` or `1`.
    (i32.store8 (i32.const 1024) (i32.add (i32.const 48) (local.get $found)))
    (call $notes (i32.const 1024) (i32.const 1)))

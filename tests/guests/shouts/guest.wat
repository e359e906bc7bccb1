  ;; Answers notes of two mebibytes.
  (func $execute
    (drop (memory.grow (i32.const 40)))
    (call $notes (i32.const 131072) (i32.const 2097152)))

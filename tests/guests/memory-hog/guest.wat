  ;; Takes memory page by page until it is given no more, and would go on.
  (func $execute
    (loop $again
      (drop (memory.grow (i32.const 16)))
      (br $again)))

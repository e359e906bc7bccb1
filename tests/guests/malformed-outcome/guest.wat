  ;; Answers a context update whose value is not JSON.
  (data (i32.const 1024) "color{red")
  (data (i32.const 1040) "\00\04\00\00\05\00\00\00\05\04\00\00\04\00\00\00")
  (func $execute
    (i32.store (i32.const 40) (i32.const 1040))
    (i32.store (i32.const 44) (i32.const 1)))

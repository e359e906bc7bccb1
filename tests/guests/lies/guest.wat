  ;; Claims that a command passed by a receipt it made up.
  (data (i32.const 1024) "command-passedrun-1/n/1")
  (data (i32.const 1048) "\00\04\00\00\0e\00\00\00\0e\04\00\00\09\00\00\00")
  (func $execute
    (i32.store (i32.const 84) (i32.const 1048))
    (i32.store (i32.const 88) (i32.const 1)))

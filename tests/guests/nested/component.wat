;; Rules in a component whose parts call each other: one part hands the graph to another, which has a memory of its own, and
;; traps unless all of it arrives.
(component
  (component $inner
    (core module $m
      (memory (export "memory") 4)
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
      (func (export "length") (param i32 i32) (result i32)
        (if (i32.ne (i32.load8_u (local.get 0)) (i32.const 0x7b)) (then unreachable))
        (local.get 1)))
    (core instance $i (instantiate $m))
    (func (export "length") (param "text" string) (result u32)
      (canon lift (core func $i "length") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))

  (component $outer
    (import "length" (func $length (param "text" string) (result u32)))
    (core module $libc
      (memory (export "memory") 4)
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024)))
    (core instance $libc (instantiate $libc))
    (core func $lowered (canon lower (func $length) (memory (core memory $libc "memory"))))

    (core module $main
      (import "libc" "memory" (memory 1))
      (import "inner" "length" (func $length (param i32 i32) (result i32)))
      (func (export "lint") (param i32 i32) (result i32)
        (if (i32.ne (call $length (local.get 0) (local.get 1)) (local.get 1)) (then unreachable))
        (i32.const 0))
      (func (export "transform") (param i32 i32) (result i32) (i32.const 16)))
    (core instance $main (instantiate $main
      (with "libc" (instance $libc))
      (with "inner" (instance (export "length" (func $lowered))))))

    (type $finding (record
      (field "rule" string) (field "severity" string) (field "message" string) (field "node" (option string))
      (field "edge" (option (tuple string string))) (field "help" (option string))))
    (func $lint (param "graph" string) (result (list $finding))
      (canon lift (core func $main "lint") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
    (func $transform (param "graph" string) (result (result (option string) (error string)))
      (canon lift (core func $main "transform") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))

    (component $named
      (type $raw (record
        (field "rule" string) (field "severity" string) (field "message" string) (field "node" (option string))
        (field "edge" (option (tuple string string))) (field "help" (option string))))
      (import "type-finding" (type $given (eq $raw)))
      (import "func-lint" (func $lint (param "graph" string) (result (list $given))))
      (import "func-transform"
        (func $transform (param "graph" string) (result (result (option string) (error string)))))
      (export $finding "finding" (type $given))
      (export "lint" (func $lint) (func (param "graph" string) (result (list $finding))))
      (export "transform" (func $transform)))
    (instance $rules (instantiate $named
      (with "type-finding" (type $finding))
      (with "func-lint" (func $lint))
      (with "func-transform" (func $transform))))
    (export "rules" (instance $rules)))

  (instance $inner (instantiate $inner))
  (instance $outer (instantiate $outer (with "length" (func $inner "length"))))
  (export "glovebox:plugin/graph-rules@0.1.0" (instance $outer "rules")))

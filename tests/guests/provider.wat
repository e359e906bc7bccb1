  ;; Addresses: 16 is the list of tools, 32 to 52 the output of a call, 128 to 512 where imports put results, 1024 and up the records of
  ;; the tools (24 bytes each), 8192 and up the texts.
  (memory (export "memory") 2)
  (global $heap (mut i32) (i32.const 65536))
  ;; The name of the called tool and the arguments, each with its length.
  (global $name (mut i32) (i32.const 0))
  (global $name_length (mut i32) (i32.const 0))
  (global $arguments (mut i32) (i32.const 0))
  (global $arguments_length (mut i32) (i32.const 0))

  ;; Gives memory out and never takes it back.
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
    (global.set $heap (i32.add (local.get $at) (local.get 3)))
    (if (i32.gt_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536)))
      (then (drop (memory.grow (i32.add (i32.div_u (local.get 3) (i32.const 65536)) (i32.const 1))))))
    (local.get $at))

  (func (export "glovebox:plugin/tool@0.1.0#definitions") (result i32)
    (call $definitions)
    (i32.const 16))

  (func (export "glovebox:plugin/tool@0.1.0#call") (param i32 i32 i32 i32) (result i32)
    (global.set $name (local.get 0))
    (global.set $name_length (local.get 1))
    (global.set $arguments (local.get 2))
    (global.set $arguments_length (local.get 3))
    (call $call)
    (i32.const 32))

  ;; Says that there are so many tools at 1024.
  (func $tools (param $count i32)
    (i32.store (i32.const 16) (i32.const 1024))
    (i32.store (i32.const 20) (local.get $count)))

  ;; Sets the text of the answer.
  (func $answer (param $at i32) (param $length i32)
    (i32.store (i32.const 32) (local.get $at))
    (i32.store (i32.const 36) (local.get $length)))

  ;; Marks the answer as an error.
  (func $fails
    (i32.store8 (i32.const 40) (i32.const 1)))

  ;; Addresses: 16 to 100 is the outcome (all zero: success), 128 to 512 where imports put results, 1024 and up is the guest's.
  (memory (export "memory") 2)
  (global $heap (mut i32) (i32.const 65536))
  ;; What the stage was told.
  (global $input (mut i32) (i32.const 0))

  ;; Gives memory out and never takes it back.
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
    (global.set $heap (i32.add (local.get $at) (local.get 3)))
    (if (i32.gt_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536)))
      (then (drop (memory.grow (i32.add (i32.div_u (local.get 3) (i32.const 65536)) (i32.const 1))))))
    (local.get $at))

  (func (export "glovebox:plugin/stage@0.1.0#execute") (param i32) (result i32)
    (global.set $input (local.get 0))
    (call $execute)
    (i32.const 16))

  ;; Sets the notes of the outcome.
  (func $notes (param $at i32) (param $length i32)
    (i32.store (i32.const 48) (local.get $at))
    (i32.store (i32.const 52) (local.get $length)))

  ;; Sets the status: 0 success, 1 partial-success, 2 retry, 3 fail, 4 skipped.
  (func $status (param $status i32)
    (i32.store8 (i32.const 16) (local.get $status)))

  ;; Keeps empty artifacts under ever new names until it is refused.
  (import "glovebox:plugin/control@0.1.0" "put-artifact" (func $put (param i32 i32 i32 i32 i32 i32 i32)))
  (func $execute (local $next i32)
    (loop $again
      ;; Four letters count in base 16.
      (i32.store (i32.const 1024) (i32.add (i32.const 0x61616161)
        (i32.or
          (i32.or (i32.and (local.get $next) (i32.const 15))
            (i32.shl (i32.and (local.get $next) (i32.const 240)) (i32.const 4)))
          (i32.or (i32.shl (i32.and (local.get $next) (i32.const 3840)) (i32.const 8))
            (i32.shl (i32.and (local.get $next) (i32.const 61440)) (i32.const 12))))))
      (call $put (i32.const 1024) (i32.const 4) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 128))
      (local.set $next (i32.add (local.get $next) (i32.const 1)))
      (br_if $again (i32.eqz (i32.load8_u (i32.const 128))))))

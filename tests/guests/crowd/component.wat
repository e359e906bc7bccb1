;; Seven nested components, each instantiating the one before it twice: more than a hundred instances out of a few lines.
(component
  (component $c0
    (core module $m)
    (core instance (instantiate $m)))
  (component $c1
    (alias outer 1 $c0 (component $b))
    (instance (instantiate $b))
    (instance (instantiate $b)))
  (component $c2
    (alias outer 1 $c1 (component $b))
    (instance (instantiate $b))
    (instance (instantiate $b)))
  (component $c3
    (alias outer 1 $c2 (component $b))
    (instance (instantiate $b))
    (instance (instantiate $b)))
  (component $c4
    (alias outer 1 $c3 (component $b))
    (instance (instantiate $b))
    (instance (instantiate $b)))
  (component $c5
    (alias outer 1 $c4 (component $b))
    (instance (instantiate $b))
    (instance (instantiate $b)))
  (component $c6
    (alias outer 1 $c5 (component $b))
    (instance (instantiate $b))
    (instance (instantiate $b)))
  (component $c7
    (alias outer 1 $c6 (component $b))
    (instance (instantiate $b))
    (instance (instantiate $b)))
  (instance (instantiate $c7)))

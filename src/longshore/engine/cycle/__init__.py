"""What happens around a decision: a scheduling cycle from the pod's attempt to its bind, as a generator.

`scheduling_cycle` goes through the extension points in order. It hands over to `webhooks` (HTTP extenders),
`post_filter` and `evictions` (preemption), `waiting` (Permit, and pods that give way), `plugin_answers`
(calls of plugins) and `reporting` (events and conditions).
"""

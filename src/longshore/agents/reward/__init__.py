"""Reward: learns how well pods of a type do on each node, and scores nodes by it.

`plugin` has the score, `learning` the controller that learns, `outcomes` turns what happens to pods into
rewards, `table` has the learned values, `columns` what to expect on each node, and `store` the form in a
ConfigMap.
"""

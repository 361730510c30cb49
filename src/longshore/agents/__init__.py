"""Agents: plugins that look at how loaded the nodes are, rather than at what their pods request.

Each is an ordinary plugin with a filter, a score or both, so that it runs in `longshore run`, in a
simulation, and behind another scheduler through `longshore extender`, which knows it by its `verb`:

    profiles:
    - plugins:
        multiPoint: {enabled: [{name: SafeOverload}]}
      pluginConfig:
      - {name: SafeOverload, args: {utilization: 85}}

One module for each agent, and none imports another: a cluster runs those that it chose. What was measured on
the nodes is in `cluster.measures`; `annotations` tells who puts it there.
"""

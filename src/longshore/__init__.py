"""A programmable Kubernetes scheduler.

Events and the time go into an engine that opens no socket and reads no clock; effects come out. One driver
runs it against a real API server, another in virtual time:

    longshore demo                              a simulated cluster, in your terminal
    longshore run --scheduler-name longshore    a real one
"""

__version__ = "0.1.0"

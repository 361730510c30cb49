"""Sets of pods that are held, planned as a whole when a trigger fires, and bound by the plan.

    kubectl label pods … planner.ciena.io/pod-set=batch      (in their template; schedulerName as below)
    kubectl apply -f trigger.yaml                            a ScheduleTrigger with the same label
    longshore trigger batch                                  now they go

The plugin PodSetPlanner, in the profile `podset-planner-scheduler`, holds and places the pods; its controller
plans and keeps the SchedulePlan; the trigger controller fires triggers whose quiet time is over.
"""

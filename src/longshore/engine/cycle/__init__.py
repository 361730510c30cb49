"""The scheduling cycle of one pod: from the decision through Reserve and Permit to Bind."""

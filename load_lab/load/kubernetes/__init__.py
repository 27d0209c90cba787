"""k6 as a TestRun of k6-operator: its manifests, and the cluster that runs them."""

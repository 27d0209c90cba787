from django.urls import path

from ops.apis import healthz, lab_latency, lab_settings, readyz

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("lab/settings", lab_settings, name="lab_settings"),
    path("lab/latency", lab_latency, name="lab_latency"),
]

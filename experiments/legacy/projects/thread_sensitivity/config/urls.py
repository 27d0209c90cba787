from django.urls import path

from workbench import views

urlpatterns = [
    path("lab/verify", views.verify),
    path("workbench/sleep/", views.sleep),
    path("workbench/read-sleep/", views.read_sleep),
    path("workbench/row-lock/", views.row_lock),
    path("workbench/random-row-lock/", views.random_row_lock),
    path("workbench/pg-sleep/", views.pg_sleep),
]

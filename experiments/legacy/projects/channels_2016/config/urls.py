from django.conf.urls import url

from config import views

urlpatterns = [
    url(r"^lab/verify$", views.verify),
    url(r"^workbench/hello/$", views.hello),
]

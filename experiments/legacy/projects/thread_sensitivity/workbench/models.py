from django.db import models

# The source's random row is one of so many.
ROWS = 100


class Row(models.Model):
    title = models.CharField(max_length=100)

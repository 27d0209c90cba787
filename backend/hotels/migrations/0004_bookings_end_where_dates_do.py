"""Postgres' dates go past year 9999 and to infinity, Python's do not."""

import datetime

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("hotels", "0003_bookings_keep_their_customers_ids")]

    operations = [
        migrations.AddConstraint(
            model_name="booking",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("check_in__gte", datetime.date.min), ("check_out__lte", datetime.date.max)
                ),
                name="booking_is_in_years_1_to_9999",
            ),
        ),
    ]

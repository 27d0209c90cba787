from django.db import migrations, models

import hotels.models

# What is there starts at the time of the migration.
_RAISE = "UPDATE {} SET version = version + (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class Migration(migrations.Migration):
    dependencies = [("hotels", "0001_initial")]

    operations = [
        operation
        for model in ("hotel", "suite")
        for operation in (
            migrations.AlterField(
                model_name=model,
                name="version",
                field=models.BigIntegerField(default=hotels.models.version_start),
            ),
            migrations.RunSQL(_RAISE.format(f"hotels_{model}"), migrations.RunSQL.noop),
        )
    ]

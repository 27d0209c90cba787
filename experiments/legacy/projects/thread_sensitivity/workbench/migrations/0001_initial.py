from django.db import migrations, models


def load(apps, schema_editor):
    from workbench.models import ROWS

    row = apps.get_model("workbench", "Row")
    row.objects.bulk_create(row(id=n, title="Row %d" % n) for n in range(1, ROWS + 1))


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="Row",
            fields=[
                ("id", models.AutoField(primary_key=True, serialize=False)),
                ("title", models.CharField(max_length=100)),
            ],
        ),
        migrations.RunPython(load, migrations.RunPython.noop),
    ]

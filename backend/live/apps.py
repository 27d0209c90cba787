from django.apps import AppConfig


class LiveConfig(AppConfig):
    name = "live"

    def ready(self) -> None:
        """Subscribe to committed bookings."""
        from hotels.signals import booking_committed

        from live.push import push

        booking_committed.connect(push)

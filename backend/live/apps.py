from django.apps import AppConfig


class LiveConfig(AppConfig):
    name = "live"

    def ready(self) -> None:
        """Bookings are told to this app from now on."""
        from hotels.signals import booking_committed

        from live.push import push

        booking_committed.connect(push)

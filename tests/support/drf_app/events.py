"""An API of Django REST framework whose answers have other forms of dates than it accepts."""

from datetime import date, datetime, time, timedelta
from itertools import count

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView
from rest_framework import serializers, viewsets
from rest_framework.response import Response
from rest_framework.routers import DefaultRouter

KINDS = [("T", "Trip"), ("S", "Stay")]
EVENTS = {
    number: {
        "id": number,
        "begin": datetime(2026, 5, number),
        "day": date(2026, 5, number),
        "doors": time(19, number),
        "length": timedelta(hours=2),
        "kind": "S",
        "level": 2,
        "days": {"mo", "tu"},
    }
    for number in range(1, 9)
}
NUMBERS = count(100)


class EventSerializer(serializers.Serializer):
    id = serializers.IntegerField(read_only=True)
    begin = serializers.DateTimeField()
    day = serializers.DateField()
    doors = serializers.TimeField()
    length = serializers.DurationField()
    kind = serializers.ChoiceField(choices=KINDS)
    level = serializers.ChoiceField(choices=[(1, "low"), (2, "high")])
    days = serializers.MultipleChoiceField(choices=["mo", "tu", "we"])


class EventViewSet(viewsets.GenericViewSet):
    queryset = ()
    serializer_class = EventSerializer

    def list(self, request):
        return Response(self.get_serializer(list(EVENTS.values()), many=True).data)

    def retrieve(self, request, pk):
        return Response(self.get_serializer(EVENTS[int(pk)]).data)

    def create(self, request):
        return self._store(request, next(NUMBERS), 201)

    def update(self, request, pk):
        return self._store(request, int(pk), 200)

    def destroy(self, request, pk):
        del EVENTS[int(pk)]
        return Response(status=204)

    def _store(self, request, number, status):
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        EVENTS[number] = {"id": number, **serializer.validated_data}
        return Response(self.get_serializer(EVENTS[number]).data, status=status)


router = DefaultRouter()
router.register("events", EventViewSet, "event")
urlpatterns = [path("", include(router.urls)), path("schema/", SpectacularAPIView.as_view())]

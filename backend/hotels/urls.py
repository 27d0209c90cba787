from django.urls import path

from hotels.apis import BookingCreateApi, HotelDetailApi, HotelListApi
from hotels.caching import cached
from hotels.caching.tokens import detail_version, list_version

_list = cached(HotelListApi.as_view(), "hotel_list", list_version)
_detail = cached(HotelDetailApi.as_view(), "hotel_detail", detail_version)

urlpatterns = [
    path("hotel/", _list, name="hotel_list"),
    path("hotel/<uuid:hotel_id>/", _detail, name="hotel_detail"),
    path("booking/", BookingCreateApi.as_view(), name="booking_create"),
]

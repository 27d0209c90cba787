from django.urls import path

from hotels.apis import BookingCreateApi, HotelDetailApi, HotelListApi

urlpatterns = [
    path("hotel/", HotelListApi.as_view(), name="hotel_list"),
    path("hotel/<uuid:hotel_id>/", HotelDetailApi.as_view(), name="hotel_detail"),
    path("booking/", BookingCreateApi.as_view(), name="booking_create"),
]

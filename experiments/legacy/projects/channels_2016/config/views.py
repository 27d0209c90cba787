"""A minimal response, and the verification of the stack."""
import channels
from channels import channel_layers
from django.http import JsonResponse

import lab_verify


def hello(request):
    return JsonResponse({"hello": "world"})


def verify(request):
    response = dict(lab_verify.versions(), channels=channels.__version__, server=lab_verify.server())
    if response["server"] == "channels":
        layer = channel_layers["default"].channel_layer
        response["layer"] = type(layer).__module__.partition(".")[0]
    return JsonResponse(response)

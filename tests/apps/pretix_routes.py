"""Print pretix's routes, an object's address for each, and the routes of addresses.

Run by pretix's Python, with its settings. It reads the URLconf and the database, and nothing of the
lab: what `lab mix make` finds is compared with it.

    python pretix_routes.py                  {route: {"name": …, "path": … or "none": reason}}
    python pretix_routes.py resolve < paths  {path: [route, name] or null}
"""

import json
import re
import sys

import django

django.setup()

from django.urls import Resolver404, URLPattern, get_resolver, resolve  # noqa: E402
from django_scopes import scopes_disabled  # noqa: E402
from pretix.base.models import Event, Order  # noqa: E402

# What no row of the database says.
NOT_STORED = {
    "asyncid": "a task that runs",
    "cart_namespace": "made by a browser",
    "cfid": "a file of a task",
    "devicetype": "a second factor",
    "file": "a file that was uploaded",
    "filename": "a file that was uploaded",
    "format": "a suffix for the format, of a route that is there without it",
    "hash": "signed, in a mail",
    "key": "a picture of a ticket",
    "task": "a task that runs",
    "token": "signed, in a mail",
}
PARAMETER = re.compile(r"\(\?P<(\w+)>(?:[^()\[\]]|\[[^\]]*\])*\)|<(?:\w+:)?(\w+)>")


def main():
    if sys.argv[1:] == ["resolve"]:
        return {path: resolved(path) for path in sys.stdin.read().split("\n") if path}
    rows = {}
    values = {slug: values_of(Event.objects.get(slug=slug)) for slug in ("summer", "tour")}
    for route, name in walk(get_resolver().url_patterns, "", []):
        # Only the second event has dates.
        event = "tour" if "<subevent>" in route or "/subevents" in route else "summer"
        rows[route] = {"name": name, **address(route, values[event])}
    return rows


def walk(patterns, above, names):
    for each in patterns:
        # As ResolverMatch.route is written.
        route = above + str(each.pattern).removeprefix("^" if above else "")
        if isinstance(each, URLPattern):
            yield route, ":".join([*names, each.name or ""])
        else:
            yield from walk(each.url_patterns, route, [*names, each.namespace or ""])


def address(route, values):
    """Return the path of an object's page, or why there is none."""
    missing = ""

    def value(match):
        nonlocal missing
        name = match.group(1) or match.group(2)
        before = re.findall(r"\w[\w-]*", PARAMETER.sub("", route[: match.start()]))[-1:] or [""]
        found = values[name] if name in values else values.get(f"{before[0]}/{name}")
        if found is None:
            missing = missing or NOT_STORED.get(name) or f"no {before[0]} in the database"
        return str(found)

    path = "/" + PARAMETER.sub(value, route)
    if missing:
        return {"none": missing}
    path = re.sub(r"[\^$]", "", path).replace("/?", "/").replace("\\", "")
    if (match := resolved(path)) and match[0] == route:
        return {"path": path}
    return {"none": f"its address belongs to {match and match[0]}"}


def resolved(path):
    try:
        match = resolve(path)
    except Resolver404:
        return None
    return [match.route, match.view_name]


def values_of(event):
    """Return a value of each parameter, by its name, or with the word before it."""
    organizer = event.organizer
    order = Order.objects.filter(event=event, invoices__isnull=False, refunds__isnull=False)[0]
    position, payment = order.positions.first(), order.payments.first()
    invoice, refund, answer = (
        order.invoices.first(),
        order.refunds.first(),
        position.answers.first(),
    )
    customer = order.customer or organizer.customers.first()
    card, item, checkins = organizer.issued_gift_cards.first(), position.item, event.checkin_lists
    team, user = organizer.teams.first(), organizer.teams.first().members.first()
    question, device = answer.question, organizer.devices.first()
    membership, kind = customer.memberships.first(), organizer.membership_types.first()
    badge, ticket = event.badge_layouts.first(), event.ticket_layouts.first()
    transactions = order.transactions.first()

    def first(rows):
        return getattr(rows.first(), "pk", None)

    return {
        "organizer": organizer.slug,
        "event": event.slug,
        "order": order.code,
        "code": order.code,
        "number": invoice.number,
        "local_id": 1,
        "subevent": first(event.subevents),
        "item": item.pk,
        "items/pk": item.pk,
        "variations/pk": first(event.items.first().variations),
        "category": item.category_id,
        "categories/pk": item.category_id,
        "quota": first(event.quotas),
        "quotas/pk": first(event.quotas),
        "question": question.pk,
        "questions/pk": question.pk,
        "discount": first(event.discounts),
        "discounts/pk": first(event.discounts),
        "voucher": first(event.vouchers),
        "vouchers/pk": first(event.vouchers),
        "entry": first(event.waitinglistentries),
        "waitinglistentries/pk": first(event.waitinglistentries),
        "list": first(checkins),
        "checkinlists/pk": first(checkins),
        "checkins/pk": first(event.checkin_lists.get(name="Entrance").checkins),
        "positions/pk": position.pk,
        "orderpositions/pk": position.pk,
        "orders/position": position.pk,
        "download/position": position.pk,
        "ticket/position": position.positionid,
        "order/secret": order.secret,
        "ticket/secret": position.web_secret,
        "payment/provider": "manual",
        "pay/payment": payment.pk,
        "payments/payment": payment.pk,
        "sca/payment": payment.pk,
        "return/payment": payment.pk,
        "refund": refund.pk,
        "invoice": invoice.pk,
        "invoices/id": invoice.pk,
        "answer": answer.pk,
        "output": "pdf",
        "preview/output": "pdf",
        "transactions/pk": transactions.pk,
        "subevents/pk": first(event.subevents),
        "taxrules/pk": first(event.tax_rules),
        "tax/rule": first(event.tax_rules),
        "badges/layout": getattr(badge, "pk", None),
        "badgelayouts/id": getattr(badge, "pk", None),
        "pdfoutput/layout": getattr(ticket, "pk", None),
        "ticketlayouts/id": getattr(ticket, "pk", None),
        "plugin": "pretix.plugins.badges",
        "exporters/pk": "orderlist",
        "customer": customer.identifier,
        "customers/identifier": customer.identifier,
        "membership/id": membership.pk,
        "memberships/pk": membership.pk,
        "memberships/id": membership.pk,
        "type": kind.pk,
        "membershiptypes/pk": kind.pk,
        "giftcard": card.pk,
        "giftcards/pk": card.pk,
        "channel": "web",
        "saleschannels/identifier": "web",
        "property": first(organizer.meta_properties),
        "event_meta_properties/pk": first(organizer.meta_properties),
        "device": device.pk,
        "device_id": device.device_id,
        "gate": first(organizer.gates),
        "team": team.pk,
        "teams/pk": team.pk,
        "members/pk": user.pk,
        "users/id": user.pk,
        "invites/pk": first(team.invites),
        "tokens/pk": first(team.tokens),
        "webhook": first(organizer.webhooks),
        "webhooks/pk": first(organizer.webhooks),
        "lang": "en",
        "version": 2,
        "login/provider": None,
        "step": "questions",
        "filetype": "png",
    }


with scopes_disabled():
    print(json.dumps(main()))

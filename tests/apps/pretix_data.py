"""Fill pretix's database through its own models. Run by pretix's Python, with its settings."""

import datetime
import sys
from decimal import Decimal

import django

django.setup()

from django.core.cache import cache  # noqa: E402
from django.db import transaction  # noqa: E402
from django.utils.timezone import now  # noqa: E402
from django_scopes import scopes_disabled  # noqa: E402
from pretix.api.models import WebHook  # noqa: E402
from pretix.base.models import (  # noqa: E402
    CheckinList,
    Discount,
    Event,
    GiftCard,
    Membership,
    MembershipType,
    Order,
    Organizer,
    Question,
    TaxRule,
    User,
    Voucher,
)
from pretix.base.services.invoices import generate_invoice  # noqa: E402

ORDERS, VOUCHERS, CUSTOMERS, DATES = 120, 60, 40, 30
PLUGINS = "banktransfer manualpayment ticketoutputpdf badges checkinlists sendmail statistics"


def main(password):
    organizer = Organizer.objects.create(name="Open Air", slug="openair")
    organizer.settings.customer_accounts = True
    user = User.objects.create_user("admin@example.org", password, locale="en", is_staff=True)
    team = organizer.teams.create(
        name="Everyone",
        all_events=True,
        all_event_permissions=True,
        all_organizer_permissions=True,
    )
    team.members.add(user)
    customers = fill_organizer(organizer, team)
    fill_event(new_event(organizer, "summer", "Summer Festival"), customers)
    fill_event(new_event(organizer, "tour", "City Tour", has_subevents=True), [])
    # What was cached while the data was not complete.
    cache.clear()


def new_event(organizer, slug, name, **fields):
    event = Event.objects.create(
        organizer=organizer,
        slug=slug,
        name=name,
        live=True,
        currency="EUR",
        date_from=now() + datetime.timedelta(days=90),
        plugins=",".join(f"pretix.plugins.{each}" for each in PLUGINS.split()),
        **fields,
    )
    event.set_defaults()
    event.settings.locales = ["en", "de", "fr"]
    event.settings.timezone = "Europe/Berlin"
    event.settings.ticket_download = True
    event.settings.ticketoutput_pdf__enabled = True
    event.settings.payment_banktransfer__enabled = True
    event.settings.waiting_list_enabled = True
    if not event.has_subevents:
        event.badge_layouts.create(name="Badge", default=True)
        event.ticket_layouts.create(name="Ticket", default=True)
    return event


def fill_organizer(organizer, team):
    team.tokens.create(name="Shop")
    team.invites.create(email="invited@example.org")
    kind = MembershipType.objects.create(organizer=organizer, name="Member")
    gate = organizer.gates.create(name="North")
    WebHook.objects.create(organizer=organizer, target_url="http://127.0.0.1:9/")
    organizer.meta_properties.create(name="genre", default="rock")
    customers = []
    for number in range(CUSTOMERS):
        customer = organizer.customers.create(
            email=f"customer{number}@example.org", name_parts={"full_name": f"Customer {number}"}
        )
        Membership.objects.create(
            customer=customer,
            membership_type=kind,
            date_start=now(),
            date_end=now() + datetime.timedelta(days=365),
        )
        card = GiftCard.objects.create(issuer=organizer, currency="EUR", customer=customer)
        card.transactions.create(value=Decimal(20), acceptor=organizer)
        customers.append(customer)
    for number in range(5):
        organizer.devices.create(name=f"Scanner {number}", gate=gate, all_events=True)
    return customers


def fill_event(event, customers):
    tax = TaxRule.objects.create(event=event, name="VAT", rate=Decimal(19), default=True)
    dates = [None]
    if event.has_subevents:
        first = event.date_from
        dates = [
            event.subevents.create(
                name=f"Tour {day}", date_from=first + datetime.timedelta(days=day), active=True
            )
            for day in range(DATES)
        ]
    items = [new_item(event, tax, number, dates) for number in range(10)]
    question = event.questions.create(question="Your age?", type=Question.TYPE_NUMBER)
    question.items.set(items)
    Discount.objects.create(event=event, internal_name="Group", condition_min_count=5)
    places = [
        CheckinList.objects.create(event=event, name="Entrance", subevent=dates[0]),
        CheckinList.objects.create(event=event, name="Backstage", subevent=dates[0]),
    ]
    for number in range(VOUCHERS):
        Voucher.objects.create(event=event, item=items[number % len(items)], tag="friends")
    for number in range(10):
        event.waitinglistentries.create(
            email=f"waiting{number}@example.org", item=items[number], subevent=dates[0]
        )
    for number in range(ORDERS):
        customer = customers[number % len(customers)] if customers else None
        order = new_order(event, number, items[number % len(items)], dates, customer)
        position = order.positions.get()
        position.answers.create(question=question, answer=str(20 + number % 50))
        if order.status == Order.STATUS_PAID and number % 4 == 1:
            places[0].checkins.create(position=position, datetime=now())
        if number % 10 == 1:
            generate_invoice(order)


def new_item(event, tax, number, dates):
    category, _ = event.categories.get_or_create(name=f"Category {number % 3}")
    item = event.items.create(
        name=f"Ticket {number}",
        category=category,
        default_price=Decimal(10 + number),
        tax_rule=tax,
        admission=True,
    )
    if number == 0:
        item.variations.create(value="Adult")
        item.variations.create(value="Child")
    for date in dates:
        quota = event.quotas.create(name=f"Quota {number}", size=1000, subevent=date)
        quota.items.add(item)
        quota.variations.set(item.variations.all())
    return item


def new_order(event, number, item, dates, customer):
    is_paid = number % 3 != 0
    order = Order.objects.create(
        event=event,
        organizer=event.organizer,
        customer=customer,
        email=f"buyer{number}@example.org",
        status=Order.STATUS_PAID if is_paid else Order.STATUS_PENDING,
        datetime=now() - datetime.timedelta(days=number % 30),
        expires=now() + datetime.timedelta(days=30),
        total=item.default_price,
        locale="en",
        sales_channel=event.organizer.sales_channels.get(identifier="web"),
    )
    position = order.positions.model(
        order=order,
        item=item,
        variation=item.variations.first(),
        subevent=dates[number % len(dates)],
        price=item.default_price,
        attendee_name_parts={"full_name": f"Guest {number}"},
        positionid=1,
    )
    position._calculate_tax()
    position.save()
    payment = order.payments.create(
        provider="manual",
        amount=order.total,
        state="confirmed" if is_paid else "created",
    )
    if number % 20 == 1:
        order.refunds.create(
            provider="manual", amount=Decimal(1), payment=payment, state="created", source="admin"
        )
    order.create_transactions(is_new=True)
    return order


with scopes_disabled(), transaction.atomic():
    main(sys.argv[1])

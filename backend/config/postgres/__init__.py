"""Django's Postgres backend with two additions (base.py).

It is the ENGINE of settings.DATABASES, except with stock Django (lab_settings: is_stock).
"""

"""Django's Postgres backend with two additions (base.py), named by settings.DATABASES' ENGINE
where Django is not to run as it comes."""

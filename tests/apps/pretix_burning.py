"""pretix with the additional work of a comparison."""

from pretix.wsgi import application as pretix

from tests.support.burning import burning

application = burning(pretix)
